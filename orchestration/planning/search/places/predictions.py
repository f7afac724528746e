"""Predictions that the searches for one task share, counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from orchestration.planning.cost.estimates import (
    computing_seconds,
    device_seconds,
    micro_seconds,
)
from orchestration.planning.cost.step_time import DeviceTime, MicroTime
from orchestration.planning.model.configuration import Configuration, Recompute
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.measured.corrections import (
    Corrections,
    MemoryCorrection,
    corrections,
)
from orchestration.planning.search.measured.unknown import Measured

if TYPE_CHECKING:
    from orchestration.planning.search.task import Task


class Predictions:
    """Predictions of a task's configurations, as its measurements correct them."""

    def __init__(self, task: Task) -> None:
        """Count from 0."""
        self.corrections = corrections(task)
        self.by_formula = isinstance(self.corrections, Corrections) and not self.corrections.known
        """True if formulas alone tell."""
        self.considered = 0
        """Number of predictions, of memory or of time."""
        self._computing: dict[tuple[object, ...], DeviceTime] = {}

    def of_memory(self, c: Configuration) -> MemoryCorrection | None:
        """Return the correction of what a formula says of memory; ``None``: none says it."""
        known = self.corrections
        return None if isinstance(known, Measured) else known.of_memory(c)

    def memory_need(self, c: Configuration) -> float:
        """Return the GiB that the fullest device needs."""
        self.considered += 1
        return self.corrections.memory_need(c)

    def step_seconds(self, c: Configuration) -> float:
        """Return the seconds of a step."""
        self.considered += 1
        return self.corrections.step_seconds(c)

    def micro_seconds(self, c: Configuration, layout: Layout) -> MicroTime:
        """Return the time of a micro-batch that layouts have in common."""
        self.considered += 1
        return micro_seconds(c, self._device_seconds(c, layout))

    def least_seconds(
        self, c: Configuration, layout: Layout, kinds: Iterable[Recompute]
    ) -> tuple[float, ...]:
        """Return lower bounds on the computing of a step, on any cluster of the same devices.

        There is one for each kind of recomputation.
        """
        if isinstance(self.corrections, Measured):
            return self.corrections.least_seconds(c, kinds)
        factor = self.corrections.least_factor
        times = computing_seconds(c, self._device_seconds(c, layout), kinds)
        return tuple(seconds * factor for seconds in times)

    def _device_seconds(self, c: Configuration, layout: Layout) -> DeviceTime:
        """Return the computing of a micro-batch, the same in however many stages.

        Ranks of context parallelism divide its tokens.
        """
        divided = (c.tensor, c.expert, c.micro_batch / c.context)
        key = (c.machine.accelerator, layout.family, layout.zero, divided)
        computing = self._computing.get(key)
        if computing is None:
            computing = self._computing[key] = device_seconds(c)
        return computing

    @property
    def least_factor(self) -> float:
        """The least by which measurements change a time; 0, where all comes from them."""
        known = self.corrections
        return 0.0 if isinstance(known, Measured) else known.least_factor
