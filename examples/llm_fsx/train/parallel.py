"""One model on many replicas: sharded or replicated, gathered into one state and spread again."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

from orchestration_runtime import Cluster
from shared.model import ByteTransformer

_GATHER = StateDictOptions(full_state_dict=True, cpu_offload=True)
_SPREAD = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)


def wrap(
    network: ByteTransformer, here: Cluster, device: torch.device, parallelism: str
) -> nn.Module:
    """The network as one of many: `fsdp` or `ddp`, or `auto`: FSDP on GPUs, DDP on CPUs."""
    on_gpu = device.type == "cuda"
    if parallelism == "ddp" or (parallelism == "auto" and not on_gpu):
        return DistributedDataParallel(network.to(device))
    policy = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16 if on_gpu else None, reduce_dtype=torch.float32
    )
    mesh = init_device_mesh(device.type, (here.world_size,))
    for block in network.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(network, mesh=mesh, mp_policy=policy)
    return network.to(device)


def gather(
    network: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Whole weights and optimizer state, on the first replica's CPU; all replicas must call it."""
    return (
        get_model_state_dict(network, options=_GATHER),
        get_optimizer_state_dict(network, optimizer, options=_GATHER),
    )


def spread(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    weights: dict[str, Any],
    state: dict[str, Any],
) -> None:
    """Give every replica what the first one has; the others pass empty states."""
    set_model_state_dict(network, weights, options=_SPREAD)
    set_optimizer_state_dict(network, optimizer, state, options=_SPREAD)


def mean(value: Tensor) -> float:
    """The mean over replicas; all must call it."""
    total = value.detach().double().cpu()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()
