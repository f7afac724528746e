"""A training job as the request that starts it.

Field by field what the SageMaker Python SDK 2.257.7 sends for the same job (its recorded requests
are among the tests), but for names, which are derived from the run.
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from typing import Any

from orchestration import strategies
from orchestration.errors import PipelineError, Problem
from orchestration.expressions import Tree, join
from orchestration.refs import Expression
from orchestration.stages.stage import Context
from orchestration.stages.training.channels import InputMode, S3Channel
from orchestration.stages.training.cluster import Candidate
from orchestration.stages.training.container import as_text, deciding_type
from orchestration.stages.training.fields import TrainingFields
from orchestration.stages.values import ExtraRequest, Source, Text

_CODE_IN_CONTAINER = "/opt/ml/input/data/code/"


def request(job: TrainingFields, context: Context, number: int) -> dict[str, Any]:
    """The request for one of the job's candidates."""
    candidate = job.candidates()[number]
    name = job_name(job, context, number)
    stopping = {"MaxRuntimeInSeconds": job.max_runtime_s}
    whole: dict[str, Any] = {
        "TrainingJobName": name,
        "RoleArn": context.role,
        "AlgorithmSpecification": _algorithm(job, context, candidate),
        "HyperParameters": _hyperparameters(job, context, candidate, name),
        "InputDataConfig": [
            {"ChannelName": channel, **source.request()} for channel, source in job.channels.items()
        ],
        "OutputDataConfig": _output(job, context),
        "ResourceConfig": job.cluster.request(candidate),
        "StoppingCondition": stopping,
        "Tags": context.tagged(job.tags).tag_list(job.name),
    }
    if job.spot is not None:
        whole["EnableManagedSpotTraining"] = True
        stopping["MaxWaitTimeInSeconds"] = job.spot.max_wait_s
    if job.cluster.max_pending_s is not None:
        stopping["MaxPendingTimeInSeconds"] = job.cluster.max_pending_s
    if job.source is not None and job.enable_network_isolation:
        whole["InputDataConfig"].append(_code_channel(job, context.archive(job.source)))
    _name_groups(whole["InputDataConfig"], [group.name for group in job.cluster.groups])
    whole |= _around(job, context)
    for field in ("HyperParameters", "InputDataConfig"):
        if not whole[field]:
            del whole[field]
    return ExtraRequest.merged(whole, job.extra_request)


def _name_groups(channels: list[dict[str, Any]], groups: list[str]) -> None:
    """Name all groups on the channels that name none, where another channel names some.

    SageMaker refuses a mixture: https://github.com/aws/sagemaker-python-sdk/issues/6089. The source
    of a channel from a file system has no such field.
    """
    sources = [channel["DataSource"].get("S3DataSource") for channel in channels]
    if groups and any(source and "InstanceGroupNames" in source for source in sources):
        for source in filter(None, sources):
            source.setdefault("InstanceGroupNames", groups)


def _code_channel(job: TrainingFields, archive: Text) -> dict[str, Any]:
    """Return the channel that brings code into a container that may not fetch it, as the SDK does.

    The toolkit reads a file, so it is one also where the job's data comes through pipes.
    """
    mode: InputMode | None = "File" if job.input_mode == "Pipe" else None
    return {"ChannelName": "code", **S3Channel(uri=archive, input_mode=mode).request()}


def _submitted(job: TrainingFields, source: Source, context: Context) -> Text:
    """Return the place of the code: in S3, or the file that its channel makes of the archive."""
    if not job.enable_network_isolation:
        return context.archive(source)
    uri = source.uri if source.archive_only else None
    name = uri.rpartition("/")[2] if isinstance(uri, str) else "sourcedir.tar.gz"
    return _CODE_IN_CONTAINER + name


def job_name(job: TrainingFields, context: Context, number: int) -> Expression[str]:
    """The name of a candidate's job: ``…-b`` for the second one."""
    own = context.resource_name(job.name)
    return own if number == 0 else join(own, f"-{string.ascii_lowercase[number]}")


def _around(job: TrainingFields, context: Context) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    output = _output(job, context)["S3OutputPath"]
    if job.checkpoints is not None:
        path = job.checkpoints.local_path
        kept = {"S3Uri": job.checkpoints_uri(context), "LocalPath": path}
        fields["CheckpointConfig"] = {
            key: value for key, value in kept.items() if value is not None
        }
    if job.vpc is not None:
        fields["VpcConfig"] = job.vpc.request()
    if job.enable_network_isolation:
        fields["EnableNetworkIsolation"] = True
    if job.encrypt_inter_container_traffic:
        fields["EnableInterContainerTrafficEncryption"] = True
    if job.environment:
        fields["Environment"] = dict(job.environment)
    if job.max_retries is not None:
        fields["RetryStrategy"] = {"MaximumRetryAttempts": job.max_retries}
    for part in (job.debugger, job.profiler):
        fields |= part.request(output) if part is not None else {}
    if job.tensorboard is not None:
        fields["TensorBoardOutputConfig"] = job.tensorboard.request()
    if job.experiment is not None:
        fields["ExperimentConfig"] = job.experiment.request()
    return fields


def _output(job: TrainingFields, context: Context) -> dict[str, Any]:
    uri = job.output.uri
    config = {"S3OutputPath": context.location(job.name, "output") if uri is None else uri}
    optional = {"KmsKeyId": job.output.kms_key, "CompressionType": job.output.compression}
    return config | {key: value for key, value in optional.items() if value is not None}


def _algorithm(
    job: TrainingFields, context: Context, candidate: Candidate | None
) -> dict[str, Any]:
    algorithm: dict[str, Any] = (
        {"TrainingImage": image(job, context, candidate)}
        if job.algorithm is None
        else {"AlgorithmName": job.algorithm}
    )
    algorithm["TrainingInputMode"] = job.input_mode
    if defined := job.defined_metrics:
        algorithm["MetricDefinitions"] = [
            {"Name": name, "Regex": regex} for name, regex in defined.items()
        ]
    if job.metrics_time_series:
        algorithm["EnableSageMakerMetricsTimeSeries"] = True
    if job.entrypoint:
        algorithm["ContainerEntrypoint"] = list(job.entrypoint)
    if job.arguments:
        algorithm["ContainerArguments"] = list(job.arguments)
    return algorithm


def image(job: TrainingFields, context: Context, candidate: Candidate | None) -> Text:
    """The container's registry path: as given, else the framework's in the region."""
    if job.image is not None:
        return job.image
    if job.framework is None:
        raise PipelineError([Problem("image", "is needed; or a framework, or an algorithm")])
    machines = (candidate,) if candidate is not None else job.cluster.machines()
    decides = deciding_type(tuple(each.instance_type for each in machines))
    distribution = strategies.image_distribution(job.distribution)
    return job.framework.registry_path(context.region, decides, distribution)


def _hyperparameters(
    job: TrainingFields, context: Context, candidate: Candidate | None, name: Expression[str]
) -> dict[str, Tree]:
    framework = job.framework
    own = strategies.hyperparameters(
        job.distribution,
        framework=None if framework is None else framework.name,
        instance_type=None if candidate is None else candidate.instance_type,
        heterogeneous=bool(job.cluster.groups),
    )
    if job.source is None and not own:
        return {key: _plain(value) for key, value in job.hyperparameters.items()}
    sent = {key: _json(value) for key, value in job.hyperparameters.items()}
    if job.source is not None:
        sent |= {
            "sagemaker_program": _json(job.source.entry_point),
            "sagemaker_submit_directory": _quoted(_submitted(job, job.source, context)),
            "sagemaker_container_log_level": _json(job.log_level),
            "sagemaker_job_name": _quoted(name),
        }
        if context.region is not None:
            sent["sagemaker_region"] = _json(context.region)
        sent |= _model_dir(job, context, own)
    return sent | {
        key: _quoted(value) if isinstance(value, Expression) else _json(value)
        for key, value in own.items()
    }


def _model_dir(job: TrainingFields, context: Context, own: Mapping[str, object]) -> dict[str, Tree]:
    """Return the model folder that TensorFlow scripts receive, as the SDK's estimator passes it."""
    framework = job.framework
    if framework is None or framework.name != "tensorflow" or "model_dir" in job.hyperparameters:
        return {}
    if framework.model_dir is False:
        return {}
    default: Text = context.location(job.name, "model")
    if own.get("sagemaker_mpi_enabled"):
        default = "/opt/ml/model"
    return {"model_dir": _quoted(default if framework.model_dir is None else framework.model_dir)}


def _quoted(value: Text) -> Tree:
    """Text as JSON, whose parts that are known in the run need no escapes: names and URIs."""
    return json.dumps(value) if isinstance(value, str) else join('"', value, '"')


def _json(value: object) -> Tree:
    # The toolkit decodes each value as JSON and takes what is none as text, so a reference goes as
    # it is.
    return join(value) if isinstance(value, Expression) else json.dumps(value)


def _plain(value: object) -> Tree:
    return join(value) if isinstance(value, Expression) else as_text(value)  # type: ignore[arg-type]  # a hyperparameter is a scalar
