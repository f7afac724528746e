"""The training jobs of a tuning job, and how each did."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestration.local.account.protocol import JsonObject
from orchestration.local.sagemaker.jobs.lifecycle import Job
from orchestration.local.sagemaker.tuning.choosing import Values

RUNNING = ("InProgress", "Stopping")
_SAME = (
    "AlgorithmSpecification",
    "CheckpointConfig",
    "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining",
    "EnableNetworkIsolation",
    "Environment",
    "InputDataConfig",
    "OutputDataConfig",
    "ResourceConfig",
    "RetryStrategy",
    "RoleArn",
    "StoppingCondition",
    "VpcConfig",
)
"""The fields that a definition has in common with CreateTrainingJob."""


def training_request(tuning: JsonObject, arn: str, number: int, values: Values) -> JsonObject:
    """Return the request of the n-th training job.

    Its machines are the first of several configurations. That a place of its own holds the
    checkpoints of each is assumed.
    """
    definition = tuning["TrainingJobDefinition"]
    name = training_name(tuning["HyperParameterTuningJobName"], number)
    request = {key: definition[key] for key in _SAME if key in definition}
    metric = objective(tuning)["MetricName"]
    request |= {
        "TrainingJobName": name,
        "HyperParameters": {
            **definition.get("StaticHyperParameters", {}),
            **values,
            "_tuning_objective_metric": metric,
        },
        "Tags": tuning.get("Tags", []),
        "TuningJobArn": arn,
    }
    if "CheckpointConfig" in request:
        checkpoints = request["CheckpointConfig"]
        place = f"{checkpoints['S3Uri'].rstrip('/')}/{name}"
        request["CheckpointConfig"] = {**checkpoints, "S3Uri": place}
    flexible = definition.get("HyperParameterTuningResourceConfig")
    if flexible is not None:
        request["ResourceConfig"] = _first(flexible)
    return request


def training_name(tuning: str, number: int) -> str:
    """Return the name of the n-th training job: ``tune-0a1b-003-5f6a7b8c``."""
    digest = hashlib.sha256(f"{tuning}/{number}".encode()).hexdigest()[:8]
    return f"{tuning}-{number:03}-{digest}"


def objective(tuning: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the objective of a tuning job: of its definition, or of its configuration."""
    config = tuning["HyperParameterTuningJobConfig"].get("HyperParameterTuningJobObjective", {})
    own: Mapping[str, str] = tuning["TrainingJobDefinition"].get("TuningObjective", config)
    return own


def _first(flexible: JsonObject) -> JsonObject:
    """Return the machines that are tried first."""
    machines = flexible.get("InstanceConfigs", [flexible])[0]
    fields = ("InstanceType", "InstanceCount", "VolumeSizeInGB")
    first = {key: machines[key] for key in fields if key in machines}
    return first | {key: flexible[key] for key in ("VolumeKmsKeyId",) if key in flexible}


@dataclass(frozen=True)
class Child:
    """A training job of a tuning job."""

    job: Job
    values: Values
    metric: str

    @property
    def runs(self) -> bool:
        """True while it runs."""
        return self.job.status in RUNNING

    @property
    def value(self) -> float | None:
        """The value of the objective, if the job completed and gave one."""
        if self.job.status != "Completed":
            return None
        measured = self.job.describe().get("FinalMetricDataList") or []
        named = [each["Value"] for each in measured if each["MetricName"] == self.metric]
        return float(named[-1]) if named else None

    @property
    def counter(self) -> str:
        """The counter that the job counts for, by its status."""
        status = self.job.status
        if status == "Failed":
            inside = (self.job.failure_reason or "").startswith("InternalServerError")
            return "RetryableError" if inside else "NonRetryableError"
        return "InProgress" if status in RUNNING else status

    @property
    def objective_status(self) -> str:
        """The status of the objective: `Pending`, `Succeeded` or `Failed`."""
        if self.runs:
            return "Pending"
        return "Failed" if self.value is None else "Succeeded"

    def summary(self, kind: str) -> JsonObject:
        """Return the job as tuning jobs describe it."""
        value = self.value
        final = {"Type": kind, "MetricName": self.metric, "Value": value}
        whole = {
            "TrainingJobName": self.job.name,
            "TrainingJobArn": self.job.arn,
            "CreationTime": self.job.created,
            "TrainingStartTime": self.job.started,
            "TrainingEndTime": self.job.ended,
            "TrainingJobStatus": self.job.status,
            "TunedHyperParameters": self.values,
            "FailureReason": self.job.failure_reason,
            "FinalHyperParameterTuningJobObjectiveMetric": None if value is None else final,
            "ObjectiveStatus": self.objective_status,
        }
        return {key: each for key, each in whole.items() if each is not None}


def best(children: Sequence[Child], kind: str) -> Child | None:
    """Return the child with the best value of the objective; the first one of equals."""
    measured = [(child.value, child) for child in children]
    valued = [(value, child) for value, child in measured if value is not None]
    if not valued:
        return None
    choose = max if kind == "Maximize" else min
    return choose(valued, key=lambda pair: pair[0])[1]
