"""The closed set of strategies."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

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
from orchestration.strategies.smp import SMPv1, SMPv2

Strategy: TypeAlias = Annotated[
    TorchDistributed
    | SMDDP
    | PyTorchDDP
    | SMPv1
    | SMPv2
    | MPI
    | Horovod
    | ParameterServer
    | MultiWorkerMirrored
    | NoStrategy,
    Field(discriminator="kind"),
]
"""The way training is distributed, identified by ``kind``."""
