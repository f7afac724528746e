"""The stages of a pipeline: what a user writes. Each lowers itself to steps."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestration.stages.aws_call import AwsCall
    from orchestration.stages.calling.fields import Needs, Poll
    from orchestration.stages.copying import S3Destination
    from orchestration.stages.deployment import Deployment, SmokeTest
    from orchestration.stages.endpoints.updates import EndpointAlarms, EndpointUpdate
    from orchestration.stages.evaluation.comparing import EvaluationMetric
    from orchestration.stages.evaluation.stage import CheckpointEvaluation
    from orchestration.stages.flow.failing import Fail
    from orchestration.stages.flow.pausing import Pause
    from orchestration.stages.lustre import ExistingFileSystem, LustreLink, NewFileSystem
    from orchestration.stages.options import (
        AirflowOptions,
        AlarmOptions,
        JobRetry,
        LoggingOptions,
        StepFunctionsOptions,
    )
    from orchestration.stages.outputs import Outputs, output
    from orchestration.stages.people import Announcement, Approval
    from orchestration.stages.processing.fields import (
        ProcessingCluster,
        ProcessingInput,
        ProcessingResult,
        Report,
        ReportThreshold,
    )
    from orchestration.stages.processing.gate import Threshold
    from orchestration.stages.processing.stage import ProcessingJob
    from orchestration.stages.registry import ModelApproval, ModelRegistration
    from orchestration.stages.serving.transform import BatchTransform
    from orchestration.stages.stage import Context, Fragment, Gate, Guard, Stage
    from orchestration.stages.staging import DataStaging
    from orchestration.stages.training import Checkpoints, ModelOutput, TrainingJob
    from orchestration.stages.training.automatic import Auto
    from orchestration.stages.training.batch import Batch
    from orchestration.stages.training.channels import EfsChannel, FileSystemChannel, S3Channel
    from orchestration.stages.training.cluster import Cluster, InstanceGroup, Machines, ManagedSpot
    from orchestration.stages.training.container import Framework
    from orchestration.stages.training.observability import (
        Collection,
        Debugger,
        Experiment,
        Profiler,
        Rule,
        TensorBoard,
    )
    from orchestration.stages.tuning import (
        Hyperband,
        TuningEnd,
        TuningJob,
        TuningLimits,
        TuningObjective,
        TuningRange,
        WarmStart,
    )
    from orchestration.stages.values import Source, StandIn, Text, Vpc

_NAMES = {
    "aws_call": ("AwsCall",),
    "calling.fields": (
        "Needs",
        "Poll",
    ),
    "copying": ("S3Destination",),
    "deployment": (
        "Deployment",
        "SmokeTest",
    ),
    "endpoints.updates": (
        "EndpointAlarms",
        "EndpointUpdate",
    ),
    "evaluation.comparing": ("EvaluationMetric",),
    "evaluation.stage": ("CheckpointEvaluation",),
    "lustre": (
        "ExistingFileSystem",
        "LustreLink",
        "NewFileSystem",
    ),
    "options": (
        "AirflowOptions",
        "AlarmOptions",
        "JobRetry",
        "LoggingOptions",
        "StepFunctionsOptions",
    ),
    "outputs": (
        "Outputs",
        "output",
    ),
    "flow.failing": ("Fail",),
    "flow.pausing": ("Pause",),
    "people": (
        "Announcement",
        "Approval",
    ),
    "processing.fields": (
        "ProcessingCluster",
        "ProcessingInput",
        "ProcessingResult",
        "Report",
        "ReportThreshold",
    ),
    "processing.gate": ("Threshold",),
    "processing.stage": ("ProcessingJob",),
    "registry": (
        "ModelApproval",
        "ModelRegistration",
    ),
    "serving.transform": ("BatchTransform",),
    "stage": (
        "Context",
        "Fragment",
        "Gate",
        "Guard",
        "Stage",
    ),
    "staging": ("DataStaging",),
    "training": (
        "Checkpoints",
        "ModelOutput",
        "TrainingJob",
    ),
    "training.automatic": ("Auto",),
    "training.batch": ("Batch",),
    "training.channels": (
        "EfsChannel",
        "FileSystemChannel",
        "S3Channel",
    ),
    "training.cluster": (
        "Cluster",
        "InstanceGroup",
        "Machines",
        "ManagedSpot",
    ),
    "training.container": ("Framework",),
    "training.observability": (
        "Collection",
        "Debugger",
        "Experiment",
        "Profiler",
        "Rule",
        "TensorBoard",
    ),
    "tuning": (
        "Hyperband",
        "TuningEnd",
        "TuningJob",
        "TuningLimits",
        "TuningObjective",
        "TuningRange",
        "WarmStart",
    ),
    "values": (
        "Source",
        "StandIn",
        "Text",
        "Vpc",
    ),
}
"""The public names by module, which is loaded when one of them is first used: a pipeline pays for
the kinds of stages that it has."""


def __getattr__(name: str) -> object:
    module = next((module for module, names in _NAMES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


__all__ = [
    "AirflowOptions",
    "AlarmOptions",
    "Announcement",
    "Approval",
    "Auto",
    "AwsCall",
    "Batch",
    "BatchTransform",
    "CheckpointEvaluation",
    "Checkpoints",
    "Cluster",
    "Collection",
    "Context",
    "DataStaging",
    "Debugger",
    "Deployment",
    "EfsChannel",
    "EndpointAlarms",
    "EndpointUpdate",
    "EvaluationMetric",
    "ExistingFileSystem",
    "Experiment",
    "Fail",
    "FileSystemChannel",
    "Fragment",
    "Framework",
    "Gate",
    "Guard",
    "Hyperband",
    "InstanceGroup",
    "JobRetry",
    "LoggingOptions",
    "LustreLink",
    "Machines",
    "ManagedSpot",
    "ModelApproval",
    "ModelOutput",
    "ModelRegistration",
    "Needs",
    "NewFileSystem",
    "Outputs",
    "Pause",
    "Poll",
    "ProcessingCluster",
    "ProcessingInput",
    "ProcessingJob",
    "ProcessingResult",
    "Profiler",
    "Report",
    "ReportThreshold",
    "Rule",
    "S3Channel",
    "S3Destination",
    "SmokeTest",
    "Source",
    "Stage",
    "StandIn",
    "StepFunctionsOptions",
    "TensorBoard",
    "Text",
    "Threshold",
    "TrainingJob",
    "TuningEnd",
    "TuningJob",
    "TuningLimits",
    "TuningObjective",
    "TuningRange",
    "Vpc",
    "WarmStart",
    "output",
]
