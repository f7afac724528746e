# Copied from orchestration.runtime 0.1.0: change it there, not here.
"""What goes wrong inside a training container.

ValueError
└── ClusterError          the launcher's variables contradict each other
RuntimeError
├── PreparationError      data could not be prepared
└── CheckpointError       a checkpoint could not be written
TimeoutError
└── PreparationTimeout    another process is still preparing
SystemExit
└── Stopped               the container was told to stop before training was complete
"""

from __future__ import annotations

from typing import Iterable


class ClusterError(ValueError):
    """What the environment says of the cluster is incomplete or contradicts itself."""

    problems: tuple[str, ...]
    """Everything that is wrong, each naming the variables it is about."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(("the environment describes no cluster:", *self.problems)))


class PreparationError(RuntimeError):
    """The process that prepared the data failed."""


class PreparationTimeout(TimeoutError):
    """Another process has not finished preparing the data in time."""


class CheckpointError(RuntimeError):
    """A checkpoint could not be written whole."""


class Stopped(SystemExit):
    """Ends an interrupted run with an exit status that is not 0: 128 + the signal's number."""

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        super().__init__(128 + signal_number)
