"""How a training script begins: its hyperparameters, and the replicas that it meets."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist

from orchestration_runtime import Cluster

# What SageMaker's launchers hand on beside the hyperparameters that a user set.
_LAUNCHER_ARGUMENTS = ("--sagemaker_", "--mp_parameters", "--model_dir", "--model-dir")


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """The hyperparameters; an unknown one is an error unless SageMaker itself added it."""
    options, others = parser.parse_known_args(arguments)
    names = [word for word in others if word.startswith("--")]
    unknown = [name for name in names if not name.startswith(_LAUNCHER_ARGUMENTS)]
    if unknown:
        known = sorted(action.dest for action in parser._actions if action.dest != "help")
        raise SystemExit(f"unknown hyperparameters {unknown}; there are {known}")
    return options


def flag(text: str) -> bool:
    """`true` or `false`: hyperparameters arrive as text, and `bool("false")` is true."""
    values = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in values:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return values[text.lower()]


@contextmanager
def process_group(here: Cluster, timeout_s: float = 1800.0) -> Iterator[torch.device]:
    """Meet the other replicas, whichever launcher started them; gives this one's device.

    On GPUs gradients travel by NCCL and messages between hosts' CPUs by Gloo.
    """
    # Gloo's own choice is the address that the host name resolves to, which may be another one.
    if interface := os.environ.get("SM_NETWORK_INTERFACE_NAME"):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    device, backend = torch.device("cpu"), "gloo"
    if torch.cuda.is_available():
        device = torch.device("cuda", here.local_rank)
        torch.cuda.set_device(device)
        backend = "cpu:gloo,cuda:nccl"
    else:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    timeout = timedelta(seconds=timeout_s)
    if here.launcher == "torchrun":
        # Its agent holds the port, and says so in variables of its own.
        dist.init_process_group(backend, timeout=timeout)
    else:
        master = f"{here.master_address}:{here.master_port}"
        dist.init_process_group(
            backend,
            init_method=f"tcp://{master if here.world_size > 1 else '127.0.0.1:0'}",
            rank=here.rank,
            world_size=here.world_size,
            timeout=timeout,
        )
    try:
        yield device
    finally:
        dist.destroy_process_group()


def any_replica(told: bool) -> bool:
    """Whether it is so on any replica; all must call it."""
    answer = torch.tensor(int(told), dtype=torch.int32)
    dist.all_reduce(answer, op=dist.ReduceOp.MAX)
    return bool(answer.item())
