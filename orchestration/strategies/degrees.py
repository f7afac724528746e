"""The number of processes of a strategy, and of those that hold one copy of the model."""

from __future__ import annotations

import math
from typing import Literal, assert_never

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
from orchestration.strategies.strategy import Strategy


def world(strategy: Strategy, instance_count: int, devices: int | None) -> int | None:
    """Count the training processes; ``None`` if the devices per host are unknown.

    ``devices`` are those of one host, 0 for a CPU host, where the toolkit starts one process by
    default. ``instance_count`` is that of the strategy's instance group.

    >>> from orchestration.strategies import MPI, TorchDistributed
    >>> world(TorchDistributed(), 2, 8), world(TorchDistributed(), 2, 0), world(MPI(), 2, None)
    (16, 2, None)
    """
    per_host = processes_per_host(strategy, devices)
    return None if per_host is None else instance_count * per_host


def processes_per_host(strategy: Strategy, devices: int | None) -> int | None:
    """Count the training processes on one host; ``None`` if its devices are unknown."""
    each_device = None if devices is None else max(devices, 1)
    match strategy:
        case TorchDistributed() | SMPv1() | MPI() | Horovod():
            return strategy.processes_per_host or each_device
        case SMDDP() | PyTorchDDP() | SMPv2():
            return each_device
        case ParameterServer() | MultiWorkerMirrored() | NoStrategy():
            return 1
        case _:
            assert_never(strategy)


def model_parallel(strategy: Strategy) -> int:
    """Count the processes that split the computation of one replica of the model.

    The product of the pipeline, tensor and context parallel degrees. Sharding (FSDP, sharded data
    parallelism, ``hybrid_shard_degree``) and expert parallelism do not count: each of their ranks
    computes on its own samples.

    >>> from orchestration.strategies import SMPv1
    >>> model_parallel(SMPv1(pipeline_parallel_degree=2, tensor_parallel_degree=4, ddp=True))
    8
    """
    match strategy:
        case SMPv1(
            partitions=partitions,
            pipeline_parallel_degree=pipeline,
            tensor_parallel_degree=tensor,
        ):
            return math.prod(degree or 1 for degree in (pipeline or partitions, tensor))
        case SMPv2(tensor_parallel_degree=tensor, context_parallel_degree=context):
            return math.prod(degree or 1 for degree in (tensor, context))
        case _:
            return 1


def replicas(strategy: Strategy, instance_count: int, devices: int | None) -> int | None:
    """Count the copies of the model that train on their own samples; ``None`` if unknown.

    Leftover processes that hold no whole copy do not count; :func:`.findings` reports them.
    """
    processes = world(strategy, instance_count, devices)
    return None if processes is None else processes // model_parallel(strategy)


def image_distribution(strategy: Strategy) -> Literal["smddp", "smp"] | None:
    """Name the library whose images a strategy needs, for :func:`.images.uri`."""
    match strategy:
        case SMDDP() | PyTorchDDP():
            return "smddp"
        case SMPv2():
            return "smp"
        case _:
            return None
