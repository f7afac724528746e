"""What a training script finds in its container: folders, hyperparameters, other replicas, a stop.

https://github.com/aws/sagemaker-training-toolkit/blob/master/ENVIRONMENT_VARIABLES.md
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import FrameType

import torch
import torch.distributed as dist

# What SageMaker's launchers hand on beside the hyperparameters that a user set.
_LAUNCHER_ARGUMENTS = ("--sagemaker_", "--mp_parameters", "--model_dir", "--model-dir")


@dataclass(frozen=True)
class Folders:
    """Where the container keeps things; `/opt/ml` unless SAGEMAKER_BASE_DIR says otherwise."""

    training: Path
    checkpoints: Path
    model: Path
    output: Path

    @classmethod
    def from_environment(cls) -> Folders:
        base = Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
        return cls(
            training=Path(os.environ.get("SM_CHANNEL_TRAINING", base / "input/data/training")),
            checkpoints=base / "checkpoints",
            model=Path(os.environ.get("SM_MODEL_DIR", base / "model")),
            output=Path(os.environ.get("SM_OUTPUT_DATA_DIR", base / "output/data")),
        )


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """The hyperparameters; an unknown one is an error unless SageMaker itself added it."""
    options, others = parser.parse_known_args(arguments)
    names = [word for word in others if word.startswith("--")]
    unknown = [name for name in names if not name.startswith(_LAUNCHER_ARGUMENTS)]
    if unknown:
        known = sorted(action.dest for action in parser._actions if action.dest != "help")
        parser.error(f"unknown hyperparameters {unknown}; there are {known}")
    return options


def flag(text: str) -> bool:
    """`true` or `false`: hyperparameters arrive as text, and `bool("false")` is true."""
    values = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in values:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return values[text.lower()]


@dataclass(frozen=True)
class Replica:
    """This process among those that train together."""

    rank: int
    world_size: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        return self.rank == 0


def join(timeout_s: float = 1800.0) -> Replica:
    """Meet the other replicas that torchrun started; without torchrun, train alone.

    On GPUs gradients travel by NCCL and messages between hosts' CPUs by Gloo.
    """
    # Gloo's own choice is the address that the host name resolves to, which may be another one.
    if interface := os.environ.get("SM_NETWORK_INTERFACE_NAME"):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    device, backend = torch.device("cpu"), "gloo"
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
        backend = "cpu:gloo,cuda:nccl"
    else:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    timeout = timedelta(seconds=timeout_s)
    if "RANK" in os.environ:
        dist.init_process_group(backend, timeout=timeout)
    elif os.environ.get("SM_HOSTS", "[]").count(",") > 0:
        raise RuntimeError(
            f"hosts {os.environ['SM_HOSTS']} would each train alone: start this script by "
            "torchrun (hyperparameter sagemaker_torch_distributed_enabled)"
        )
    else:
        dist.init_process_group(
            backend, init_method="tcp://127.0.0.1:0", rank=0, world_size=1, timeout=timeout
        )
    return Replica(dist.get_rank(), dist.get_world_size(), device)


class StopSignal:
    """SIGTERM, which SageMaker sends 120 s before it kills a container that must go.

    The toolkit's own process may not hand the signal on, so regular checkpoints are the real
    protection and this only makes the last one fresher.
    """

    def __init__(self) -> None:
        self._received = False
        signal.signal(signal.SIGTERM, self._receive)

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        self._received = True

    def agreed(self) -> bool:
        """Whether any replica was told to stop; every replica gets the same answer."""
        received = torch.tensor(int(self._received), dtype=torch.int32)
        dist.all_reduce(received, op=dist.ReduceOp.MAX)
        return bool(received.item())


STOPPED = 128 + signal.SIGTERM
"""Exit status after a stop: training did not finish, so it must not look like success."""
