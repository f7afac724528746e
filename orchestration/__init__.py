"""SageMaker training for Airflow and Step Functions, from one typed description."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestration.errors import (
        DeployError,
        ExpressionError,
        GraphError,
        LocalError,
        OrchestrationError,
        PipelineError,
        Problem,
        ReferenceUseError,
        RequestError,
        RunError,
        UnsupportedError,
    )
    from orchestration.expressions import join, parameter, run_id
    from orchestration.pipeline import Parameter, Pipeline, Schedule
    from orchestration.refs import Expression, Ref
    from orchestration.stages import (
        CheckpointEvaluation,
        Checkpoints,
        Cluster,
        DataStaging,
        Deployment,
        ExistingFileSystem,
        FileSystemChannel,
        ManagedSpot,
        NewFileSystem,
        S3Channel,
        S3Destination,
        SmokeTest,
        Source,
        Threshold,
        TrainingJob,
        Vpc,
    )
    from orchestration.strategies import MPI, SMDDP, NoStrategy, TorchDistributed

__version__ = "0.1.0"

_MODULES = {
    "CheckpointEvaluation": "orchestration.stages",
    "Checkpoints": "orchestration.stages",
    "Cluster": "orchestration.stages",
    "DataStaging": "orchestration.stages",
    "DeployError": "orchestration.errors",
    "Deployment": "orchestration.stages",
    "ExistingFileSystem": "orchestration.stages",
    "Expression": "orchestration.refs",
    "ExpressionError": "orchestration.errors",
    "FileSystemChannel": "orchestration.stages",
    "GraphError": "orchestration.errors",
    "LocalError": "orchestration.errors",
    "MPI": "orchestration.strategies",
    "ManagedSpot": "orchestration.stages",
    "NewFileSystem": "orchestration.stages",
    "NoStrategy": "orchestration.strategies",
    "OrchestrationError": "orchestration.errors",
    "Parameter": "orchestration.pipeline",
    "Pipeline": "orchestration.pipeline",
    "PipelineError": "orchestration.errors",
    "Problem": "orchestration.errors",
    "Ref": "orchestration.refs",
    "ReferenceUseError": "orchestration.errors",
    "RequestError": "orchestration.errors",
    "RunError": "orchestration.errors",
    "S3Channel": "orchestration.stages",
    "S3Destination": "orchestration.stages",
    "SMDDP": "orchestration.strategies",
    "Schedule": "orchestration.pipeline",
    "SmokeTest": "orchestration.stages",
    "Source": "orchestration.stages",
    "Threshold": "orchestration.stages",
    "TorchDistributed": "orchestration.strategies",
    "TrainingJob": "orchestration.stages",
    "UnsupportedError": "orchestration.errors",
    "Vpc": "orchestration.stages",
    "join": "orchestration.expressions",
    "parameter": "orchestration.expressions",
    "run_id": "orchestration.expressions",
}
"""Where each public name lives; what nobody asks for is not loaded."""


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


__all__ = [
    "MPI",
    "SMDDP",
    "CheckpointEvaluation",
    "Checkpoints",
    "Cluster",
    "DataStaging",
    "DeployError",
    "Deployment",
    "ExistingFileSystem",
    "Expression",
    "ExpressionError",
    "FileSystemChannel",
    "GraphError",
    "LocalError",
    "ManagedSpot",
    "NewFileSystem",
    "NoStrategy",
    "OrchestrationError",
    "Parameter",
    "Pipeline",
    "PipelineError",
    "Problem",
    "Ref",
    "ReferenceUseError",
    "RequestError",
    "RunError",
    "S3Channel",
    "S3Destination",
    "Schedule",
    "SmokeTest",
    "Source",
    "Threshold",
    "TorchDistributed",
    "TrainingJob",
    "UnsupportedError",
    "Vpc",
    "__version__",
    "join",
    "parameter",
    "run_id",
]
