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
        Batch,
        CheckpointEvaluation,
        Checkpoints,
        Cluster,
        Collection,
        DataStaging,
        Debugger,
        Deployment,
        EfsChannel,
        ExistingFileSystem,
        Experiment,
        FileSystemChannel,
        Framework,
        InstanceGroup,
        Machines,
        ManagedSpot,
        ModelOutput,
        NewFileSystem,
        Profiler,
        Rule,
        S3Channel,
        S3Destination,
        SmokeTest,
        Source,
        TensorBoard,
        Threshold,
        TrainingJob,
        Vpc,
    )
    from orchestration.strategies import (
        MPI,
        SMDDP,
        Horovod,
        MultiWorkerMirrored,
        NoStrategy,
        ParameterServer,
        PyTorchDDP,
        SMPv1,
        SMPv2,
        TorchDistributed,
    )

__version__ = "0.1.0"

_MODULES = {
    "Batch": "orchestration.stages",
    "CheckpointEvaluation": "orchestration.stages",
    "Checkpoints": "orchestration.stages",
    "Cluster": "orchestration.stages",
    "Collection": "orchestration.stages",
    "DataStaging": "orchestration.stages",
    "Debugger": "orchestration.stages",
    "DeployError": "orchestration.errors",
    "Deployment": "orchestration.stages",
    "EfsChannel": "orchestration.stages",
    "ExistingFileSystem": "orchestration.stages",
    "Experiment": "orchestration.stages",
    "Expression": "orchestration.refs",
    "ExpressionError": "orchestration.errors",
    "FileSystemChannel": "orchestration.stages",
    "Framework": "orchestration.stages",
    "GraphError": "orchestration.errors",
    "Horovod": "orchestration.strategies",
    "InstanceGroup": "orchestration.stages",
    "LocalError": "orchestration.errors",
    "MPI": "orchestration.strategies",
    "Machines": "orchestration.stages",
    "ManagedSpot": "orchestration.stages",
    "ModelOutput": "orchestration.stages",
    "MultiWorkerMirrored": "orchestration.strategies",
    "NewFileSystem": "orchestration.stages",
    "NoStrategy": "orchestration.strategies",
    "OrchestrationError": "orchestration.errors",
    "Parameter": "orchestration.pipeline",
    "ParameterServer": "orchestration.strategies",
    "Pipeline": "orchestration.pipeline",
    "PipelineError": "orchestration.errors",
    "Problem": "orchestration.errors",
    "Profiler": "orchestration.stages",
    "PyTorchDDP": "orchestration.strategies",
    "Ref": "orchestration.refs",
    "ReferenceUseError": "orchestration.errors",
    "RequestError": "orchestration.errors",
    "Rule": "orchestration.stages",
    "RunError": "orchestration.errors",
    "S3Channel": "orchestration.stages",
    "S3Destination": "orchestration.stages",
    "SMDDP": "orchestration.strategies",
    "SMPv1": "orchestration.strategies",
    "SMPv2": "orchestration.strategies",
    "Schedule": "orchestration.pipeline",
    "SmokeTest": "orchestration.stages",
    "Source": "orchestration.stages",
    "TensorBoard": "orchestration.stages",
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
    "Batch",
    "CheckpointEvaluation",
    "Checkpoints",
    "Cluster",
    "Collection",
    "DataStaging",
    "Debugger",
    "DeployError",
    "Deployment",
    "EfsChannel",
    "ExistingFileSystem",
    "Experiment",
    "Expression",
    "ExpressionError",
    "FileSystemChannel",
    "Framework",
    "GraphError",
    "Horovod",
    "InstanceGroup",
    "LocalError",
    "Machines",
    "ManagedSpot",
    "ModelOutput",
    "MultiWorkerMirrored",
    "NewFileSystem",
    "NoStrategy",
    "OrchestrationError",
    "Parameter",
    "ParameterServer",
    "Pipeline",
    "PipelineError",
    "Problem",
    "Profiler",
    "PyTorchDDP",
    "Ref",
    "ReferenceUseError",
    "RequestError",
    "Rule",
    "RunError",
    "S3Channel",
    "S3Destination",
    "SMPv1",
    "SMPv2",
    "Schedule",
    "SmokeTest",
    "Source",
    "TensorBoard",
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
