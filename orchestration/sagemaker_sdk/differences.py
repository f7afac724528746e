"""Differences between a converted job's request and the SDK's own, with reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that differs from the SDK's request."""

    sdk: Literal["V2", "V3", "both"]
    """The generation of the SDK."""
    field: str
    """The path into the request: ``HyperParameters.sagemaker_job_name``."""
    reason: str


DIFFERENCES: Final = (
    Difference(
        "both",
        "TrainingJobName",
        "derived from the pipeline, the stage and the run, so that a retry finds the job that an "
        "earlier attempt started; the SDK takes base_job_name and the time",
    ),
    Difference("V2", "HyperParameters.sagemaker_job_name", "the job's name"),
    Difference(
        "both",
        "RoleArn",
        "a pipeline has one role for all its stages: give it Pipeline(role=…), which settings() "
        "reads from the estimator",
    ),
    Difference(
        "both",
        "Tags",
        "gains the pipeline, the stage and the run, to find and clean up a run's resources by",
    ),
    Difference(
        "V2",
        "HyperParameters.sagemaker_submit_directory",
        "the archive lies under the digest of its content in the pipeline's workspace, not under "
        "the job's name; it is reproducible, and leaves out __pycache__, *.pyc, .git, .venv, "
        ".ipynb_checkpoints, .DS_Store and *.lock.json; S3:// becomes s3://, which the toolkit "
        "wants, and with network isolation an archive in S3 keeps its name, which for the SDK is "
        "always sourcedir.tar.gz",
    ),
    Difference(
        "V2",
        "HyperParameters.mp_parameters",
        "the same JSON object; its keys are in the order of the strategy's fields",
    ),
    Difference(
        "V2",
        "HyperParameters.sagemaker_*_enabled",
        "true, also where the distribution has the text 'true', which the SDK sends as text",
    ),
    Difference(
        "V2",
        "HyperParameters.sagemaker_mpi_num_of_processes_per_host",
        "a whole number, also where the distribution has its text or a float, which the SDK sends "
        "as they are",
    ),
    Difference(
        "V2",
        "InputDataConfig[code]",
        "with network isolation: the same archive, as a channel; it is a file also where the job's "
        "data comes through pipes, of which the toolkit could not read it",
    ),
    Difference(
        "V2",
        "OutputDataConfig.S3OutputPath",
        "where the estimator gives none: the run's place in the pipeline's workspace instead of "
        "the account's default bucket, which only a call to AWS would tell",
    ),
    Difference(
        "V2",
        "DebugHookConfig.S3OutputPath",
        "where the estimator gives neither it nor an output path: as the output path",
    ),
    Difference(
        "V2",
        "ProfilerConfig.S3OutputPath",
        "where the estimator gives neither it nor an output path: as the output path",
    ),
    Difference(
        "V2",
        "HyperParameters.model_dir",
        "TensorFlow, where the estimator gives none: the run's place in the workspace",
    ),
    Difference(
        "V2",
        "DebugHookConfig.CollectionConfigurations",
        "in the order of the rules and the hook; the SDK has them in a set, in no order",
    ),
    Difference(
        "V2",
        "ProfilerRuleConfigurations[].RuleConfigurationName",
        "the rule that the SDK adds for detailed profiling is named without the time of day",
    ),
    Difference(
        "both",
        "(empty fields)",
        "an empty environment, list or mapping is left out, where the SDK sends it empty",
    ),
    Difference(
        "V3",
        "AlgorithmSpecification.ContainerEntrypoint, ContainerArguments",
        "with source code: V3 replaces the container's entry point with a script of its own; "
        "here the training toolkit in the container starts the entry script",
    ),
    Difference(
        "V3",
        "InputDataConfig[code], InputDataConfig[sm_drivers]",
        "with source code: the toolkit takes it from sagemaker_submit_directory and brings its "
        "own launchers, so neither the code nor V3's drivers are channels (with network isolation "
        "its archive is); the script runs in /opt/ml/code instead of /opt/ml/input/data/code, and "
        "__pycache__, *.pyc, .git, .venv, .ipynb_checkpoints, .DS_Store and *.lock.json are left "
        "out",
    ),
    Difference(
        "V3",
        "InputDataConfig[].DataSource.S3DataSource.S3DataDistributionType",
        "FullyReplicated, as V3 writes for an S3 URI, also where an S3DataSource does not say",
    ),
    Difference(
        "V3",
        "HyperParameters",
        "with source code: JSON-encoded as the toolkit decodes them, and joined by the toolkit's "
        "own (sagemaker_program, sagemaker_submit_directory, …) and the strategy's",
    ),
    Difference(
        "V3",
        "(processes of MPI)",
        "V3's driver starts process_count_per_node processes in all (mpirun -np), however many "
        "hosts there are; the toolkit starts so many on each, which is what the name says",
    ),
    Difference(
        "V3",
        "(arguments of the script)",
        "with source code: a boolean reaches the script as the toolkit writes it, True, where V3's "
        "drivers write true; and the toolkit installs a requirements.txt of the folder, named or "
        "not",
    ),
    Difference(
        "V3",
        "CheckpointConfig.S3Uri",
        "where the trainer gives none: the run's place in the workspace; V3 takes the default "
        "bucket and the job's name",
    ),
)
"""Every remaining difference; all other fields are equal."""
