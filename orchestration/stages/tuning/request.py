"""A tuning job as the request that starts it.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateHyperParameterTuningJob.html
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from orchestration.refs import Expression
from orchestration.stages.stage import Context
from orchestration.stages.training.request import request as training_request
from orchestration.stages.tuning.fields import TuningFields
from orchestration.stages.values import ExtraRequest
from orchestration.strategies import NoStrategy

LONGEST_NAME: Final = 32
"""Characters of a tuning job's name; its training jobs are called after it."""
_LONGEST_PREFIX: Final = LONGEST_NAME - 12 - len("-99")
"""12 characters are the run's identity, and a job that is started anew gets a number."""

DEFINITION: Final = frozenset({
    "AlgorithmSpecification", "CheckpointConfig", "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining", "EnableNetworkIsolation", "Environment", "InputDataConfig",
    "OutputDataConfig", "ResourceConfig", "RetryStrategy", "RoleArn", "StoppingCondition",
    "VpcConfig",
})  # fmt: skip
"""The fields of CreateTrainingJob that the definition of a tuning job's training jobs has, too.

Source: botocore's ``HyperParameterTrainingJobDefinition``, 1.43.117."""


def tuning_name(stage: str, context: Context) -> Expression[str]:
    """Return the name of the tuning job: short, and beginning alike in every run."""
    prefix = context.name_prefix(stage)
    if len(prefix) > _LONGEST_PREFIX:
        digest = hashlib.sha256(prefix.encode()).hexdigest()[:4]
        prefix = f"{prefix[: _LONGEST_PREFIX - 6].rstrip('-')}-{digest}-"
    return context.named(prefix)


def request(job: TuningFields, context: Context) -> dict[str, Any]:
    """Return ``CreateHyperParameterTuningJob``'s request.

    Raises :class:`~orchestration.errors.PipelineError` where the framework has no image for it,
    ``ValueError`` where ``extra_request`` repeats what is set already.
    """
    whole: dict[str, Any] = {
        "HyperParameterTuningJobName": tuning_name(job.name, context),
        "HyperParameterTuningJobConfig": _config(job),
        "TrainingJobDefinition": _definition(job, context),
        "Tags": context.tagged(job.tags).tag_list(job.name),
    }
    if job.warm_start is not None:
        types = {"identical": "IdenticalDataAndAlgorithm", "transfer": "TransferLearning"}
        whole["WarmStartConfig"] = {
            "ParentHyperParameterTuningJobs": [
                {"HyperParameterTuningJobName": parent} for parent in job.warm_start.parents
            ],
            "WarmStartType": types[job.warm_start.type],
        }
    return ExtraRequest.merged(whole, job.extra_request)


def _config(job: TuningFields) -> dict[str, Any]:
    limits = {
        "MaxNumberOfTrainingJobs": job.limits.jobs,
        "MaxParallelTrainingJobs": job.limits.parallel,
        "MaxRuntimeInSeconds": job.limits.runtime_s,
    }
    config: dict[str, Any] = {
        "Strategy": job.search.title(),
        "HyperParameterTuningJobObjective": {
            "Type": "Maximize" if job.objective.direction == "max" else "Minimize",
            "MetricName": job.objective.metric,
        },
        "ResourceLimits": _present(limits),
        "ParameterRanges": _ranges(job),
        "TrainingJobEarlyStoppingType": "Auto" if job.early_stopping else "Off",
    }
    if job.hyperband is not None:
        resources = {
            "MinResource": job.hyperband.min_resource,
            "MaxResource": job.hyperband.max_resource,
        }
        config["StrategyConfig"] = {"HyperbandStrategyConfig": _present(resources)}
    if criteria := _criteria(job):
        config["TuningJobCompletionCriteria"] = criteria
    return config if job.seed is None else {**config, "RandomSeed": job.seed}


def _ranges(job: TuningFields) -> dict[str, Any]:
    encoded = job.source is not None or not isinstance(job.distribution, NoStrategy)
    ranges: dict[str, Any] = {}
    for name, each in job.ranges.items():
        kind, entry = each.request(name, encoded=encoded)
        ranges.setdefault(kind, []).append(entry)
    return ranges


def _criteria(job: TuningFields) -> dict[str, Any]:
    end, criteria = job.end, dict[str, Any]()
    if end is None:
        return criteria
    if end.objective is not None:
        criteria["TargetObjectiveMetricValue"] = end.objective
    if end.not_improving is not None:
        criteria["BestObjectiveNotImproving"] = {
            "MaxNumberOfTrainingJobsNotImproving": end.not_improving
        }
    if end.converged:
        criteria["ConvergenceDetected"] = {"CompleteOnConvergence": "Enabled"}
    return criteria


def _definition(job: TuningFields, context: Context) -> dict[str, Any]:
    """Return the definition of the training jobs, as far as one has their fields."""
    sent = training_request(job.training(), context, 0)
    definition = {key: value for key, value in sent.items() if key in DEFINITION}
    if "HyperParameters" in sent:
        definition["StaticHyperParameters"] = sent["HyperParameters"]
    if job.cluster.preferences:
        del definition["ResourceConfig"]
        definition["HyperParameterTuningResourceConfig"] = _flexible(job)
    return definition


def _flexible(job: TuningFields) -> dict[str, Any]:
    """Return the machines that SageMaker tries in order."""
    cluster = job.cluster
    config: dict[str, Any] = {
        "AllocationStrategy": "Prioritized",
        "InstanceConfigs": [
            {
                "InstanceType": machines.instance_type,
                "InstanceCount": machines.instance_count,
                "VolumeSizeInGB": cluster.volume_gib,
            }
            for machines in cluster.machines()
        ],
    }
    key = cluster.volume_kms_key
    return config if key is None else {**config, "VolumeKmsKeyId": key}


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
