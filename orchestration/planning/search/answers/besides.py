"""Time of a training job beside its steps: its start, and its checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestration.planning.cost.model_states import ParameterBytes, parameter_bytes
from orchestration.planning.model.configuration import Configuration, Machine
from orchestration.planning.search.amounts import duration
from orchestration.planning.search.task import Task


@dataclass(frozen=True, slots=True)
class Besides:
    """Seconds of a job beside its steps, which are billed as well."""

    startup_s: float = 0.0
    checkpoints: int = 0
    """Number of checkpoints."""
    checkpoints_s: float = 0.0
    """Seconds of all checkpoints."""

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.startup_s + self.checkpoints_s

    @property
    def parts(self) -> list[str]:
        """Its parts, for people; none, if it takes no time."""
        parts = [f"{duration(self.startup_s)} to start"] if self.startup_s else []
        if self.checkpoints:
            each = duration(self.checkpoints_s / self.checkpoints)
            parts.append(f"{self.checkpoints:,} checkpoints of {each}")
        return parts


def besides(task: Task, batch: int) -> Besides:
    """Return the time beside the steps with this batch; training waits for a checkpoint."""
    if task.checkpoints is None:
        return Besides(task.startup_s)
    count = task.steps(batch) // task.checkpoints.every_steps
    seconds = checkpoint_bytes(task) / (task.checkpoints.gb_per_s * _GB)
    return Besides(task.startup_s, count, count * seconds)


_GB: Final = 1e9


def checkpoint_bytes(task: Task) -> float:
    """Return the bytes of what was trained with its optimizer states; frozen weights are kept."""
    each = bytes_per_parameter(task)
    trained = task.model.parameters if task.trainable is None else task.trainable
    return trained * (each.weight + each.optimizer)


def bytes_per_parameter(task: Task) -> ParameterBytes:
    """Return the bytes of one parameter's states, whatever the layout."""
    machine = Machine(accelerator="", devices=1, devices_per_node=1, device_memory_gib=0.0)
    c = Configuration(
        model=task.model, machine=machine, sequence=1, global_batch=1, micro_batch=1,
        precision=task.precision, optimizer=task.optimizer,
    )  # fmt: skip
    return parameter_bytes(c)
