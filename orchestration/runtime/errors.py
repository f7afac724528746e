"""Errors inside a training container.

ValueError
└── ClusterError          the launcher's variables contradict each other
RuntimeError
├── PreparationError      data could not be prepared
└── CheckpointError       a checkpoint could not be written
TimeoutError
└── PreparationTimeout    another process is still preparing
SystemExit
└── Stopped               the container received a stop signal before training was complete
"""

from __future__ import annotations

from typing import Iterable


class ClusterError(ValueError):
    """The environment's description of the cluster is incomplete or contradictory."""

    problems: tuple[str, ...]
    """Everything that is wrong, each naming the variables it is about."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "\n".join(("the environment does not describe a cluster:", *self.problems))
        )


class PreparationError(RuntimeError):
    """The process that prepared the data failed."""


class PreparationTimeout(TimeoutError):
    """Another process has not finished preparing the data in time."""


class CheckpointError(RuntimeError):
    """A checkpoint could not be written whole."""


class Stopped(SystemExit):
    """End an interrupted run with a non-zero exit status: 128 + the signal's number."""

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        super().__init__(128 + signal_number)
