"""Ways of distributing training over the hosts of a SageMaker training job.

Each strategy is a Pydantic model with its own fields; it becomes the hyperparameters that the
in-container toolkit reads. The combinations that are supported are data with sources
(:mod:`.support`), not code.
"""

from orchestration.strategies.degrees import (
    image_distribution,
    model_parallel,
    processes_per_host,
    replicas,
    world,
)
from orchestration.strategies.findings import device_findings, findings, first_version
from orchestration.strategies.models import (
    MPI,
    SMDDP,
    Horovod,
    MultiWorkerMirrored,
    NoStrategy,
    ParameterServer,
    PyTorchDDP,
    TorchDistributed,
)
from orchestration.strategies.sending import hyperparameters
from orchestration.strategies.smp import SMPv1, SMPv2
from orchestration.strategies.strategy import Strategy
from orchestration.strategies.use import Finding, Use

__all__ = [
    "MPI",
    "SMDDP",
    "Finding",
    "Horovod",
    "MultiWorkerMirrored",
    "NoStrategy",
    "ParameterServer",
    "PyTorchDDP",
    "SMPv1",
    "SMPv2",
    "Strategy",
    "TorchDistributed",
    "Use",
    "device_findings",
    "findings",
    "first_version",
    "hyperparameters",
    "image_distribution",
    "model_parallel",
    "processes_per_host",
    "replicas",
    "world",
]
