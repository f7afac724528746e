"""Strategies as hyperparameters, which the in-container toolkit reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

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

_DDP = "sagemaker_distributed_dataparallel_enabled"
_DDP_OPTIONS = "sagemaker_distributed_dataparallel_custom_mpi_options"
_GROUPS = "sagemaker_distribution_instance_groups"
_INSTANCE = "sagemaker_instance_type"
_MPI = "sagemaker_mpi_enabled"
_MPI_OPTIONS = "sagemaker_mpi_custom_mpi_options"
# sagemaker-training 5.1.4 reads the process count of every runner from this key.
_PROCESSES = "sagemaker_mpi_num_of_processes_per_host"
_TORCHRUN = "sagemaker_torch_distributed_enabled"

_SWITCHES: Mapping[str, Mapping[str, object]] = {
    "parameter_server": {"sagemaker_parameter_server_enabled": True},
    "multi_worker_mirrored": {"sagemaker_multi_worker_mirrored_strategy_enabled": True},
    "none": {},
}


def hyperparameters(
    strategy: Strategy,
    instance_type: object = None,
    *,
    framework: str | None = None,
    heterogeneous: bool = False,
) -> Mapping[str, object]:
    """Return the toolkit's hyperparameters, before JSON encoding, like the SageMaker SDK 2.257.

    ``framework`` is that of :class:`Use`: some estimators send a strategy differently. A
    heterogeneous cluster has no single ``instance_type``: the SDK then sends ``null`` with
    SageMaker's libraries, and nothing with torchrun; the toolkit looks at its own host instead.
    """
    instance = None if heterogeneous else instance_type
    named = {} if heterogeneous else {_INSTANCE: instance}
    match strategy:
        case TorchDistributed(processes_per_host=processes):
            chosen = {} if processes is None else {_PROCESSES: processes}
            return {_TORCHRUN: True, **named, **chosen}
        case SMDDP(launcher="torchrun"):
            return {_TORCHRUN: True, **named}
        case SMPv2():
            return {**_model_parallel(strategy, instance), _TORCHRUN: True, **named}
        case PyTorchDDP() if framework == "huggingface":
            # The SDK's estimator for Hugging Face does not send it like SMDDP.
            return {"sagemaker_pytorch_ddp_enabled": True, **named}
        case SMDDP() | PyTorchDDP():
            return {**_group(strategy), **_ddp(strategy, instance)}
        case SMPv1():
            mpi = _mpi(strategy, framework)
            return {**_group(strategy), **mpi, **_model_parallel(strategy, instance)}
        case MPI() | Horovod():
            return {**_group(strategy), **_mpi(strategy, framework)}
        case ParameterServer() | MultiWorkerMirrored() | NoStrategy():
            return _SWITCHES[strategy.kind]
        case _:
            assert_never(strategy)


def _ddp(strategy: SMDDP | PyTorchDDP, instance: object) -> dict[str, object]:
    return {_DDP: True, _INSTANCE: instance, _DDP_OPTIONS: strategy.custom_mpi_options or ""}


def _mpi(strategy: MPI | Horovod | SMPv1, framework: str | None) -> dict[str, object]:
    sent: dict[str, object] = {_MPI: True}
    if strategy.processes_per_host is not None:
        sent[_PROCESSES] = strategy.processes_per_host
    # The SDK's estimator for MXNet sends no options without a process count; see `findings`.
    if framework != "mxnet" or strategy.processes_per_host is not None:
        sent[_MPI_OPTIONS] = strategy.custom_mpi_options or ""
    return sent


def _model_parallel(strategy: SMPv1 | SMPv2, instance: object) -> dict[str, object]:
    parameters = strategy.parameters()
    # As in the SDK, which leaves out an empty mapping.
    extra = {"mp_parameters": parameters} if parameters else {}
    return {**extra, _DDP: False, _INSTANCE: instance}


def _group(strategy: SMDDP | PyTorchDDP | SMPv1 | MPI | Horovod) -> dict[str, object]:
    return {} if strategy.instance_group is None else {_GROUPS: [strategy.instance_group]}
