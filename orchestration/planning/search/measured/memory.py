"""The memory of a model that no formula describes, from its states and measured peaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from orchestration.planning.cost.coefficients import fitted
from orchestration.planning.cost.estimates import memory_room
from orchestration.planning.cost.memory import MemoryUse, memory_use
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import sizes
from orchestration.planning.search.measured.known import Known

_SAME: Final = 1.05
_OTHER: Final = 1.2
_UNKNOWN: Final = 2.0
"""Margins of a peak that was measured, that others tell, and that nothing tells."""

_MORE: Final = 1.001


class MeasuredMemory:
    """GiB of the fullest device: states by the number of parameters, and measured activations."""

    def __init__(self, known: Sequence[Known]) -> None:
        """Take the peaks, and what ran out of memory."""
        self._ran = [each.configuration for each in known if each.measurement.step_time_s]
        self._lacking = [each.configuration for each in known if each.measurement.out_of_memory]
        self._peaks = {
            each.configuration.micro_batch: (gib, each.configuration)
            for each in sorted(known, key=lambda each: each.measurement.peak_memory_gib or 0)
            if (gib := each.measurement.peak_memory_gib)
        }
        """The highest peak of each micro-batch."""

    def use(self, c: Configuration) -> MemoryUse:
        """Return the memory of a configuration, by use."""
        states = _states(c)
        activations = self._activations(c.micro_batch, states.need)
        return replace(states, activations=activations, working=0.0, slack=0.0)

    def most_gib(self, c: Configuration) -> float:
        """Return the need at its high end; what ran fits, and what did not does not."""
        need = self.use(c).need * (self.margin(c) if self._peaks else 1.0)
        room = memory_room(c)
        if any(_takes(c, lacking) for lacking in self._lacking):
            return max(need, _MORE * c.machine.device_memory_gib)
        return min(need, room) if any(_takes(ran, c) for ran in self._ran) else need

    def margin(self, c: Configuration) -> float:
        """Return the high end of the need over its expected value."""
        if c.micro_batch in self._peaks:
            return _SAME
        return _OTHER if self._peaks else _UNKNOWN

    def fits(self, c: Configuration) -> bool:
        """Return whether nothing says that the memory is not enough."""
        return self.most_gib(c) <= memory_room(c)

    def _activations(self, micro: int, states: float) -> float:
        """Return the GiB that a micro-batch takes: in proportion to it, or on a measured line."""
        least = max(
            (_per_sample(memory_room(c), c) * _MORE for c in self._lacking), default=0.0
        ) * micro  # fmt: skip
        if len(self._peaks) < _POINTS:
            known = [_per_sample(gib, c) for gib, c in self._peaks.values()]
            return max([least, *(each * micro for each in known)])
        low, high = min(self._peaks), max(self._peaks)
        slope = max(0.0, (self._peaks[high][0] - self._peaks[low][0]) / (high - low))
        line = self._peaks[low][0] + slope * (micro - low)
        return max(least, line - states)


_POINTS: Final = 2


def _states(c: Configuration) -> MemoryUse:
    return memory_use(c, sizes(c.model, c.sequence), fitted())


def _per_sample(peak_gib: float, c: Configuration) -> float:
    return max(0.0, peak_gib - _states(c).need) / c.micro_batch


def _takes(c: Configuration, other: Configuration) -> bool:
    """Return whether a configuration fills a device at least as much as another."""
    return (
        c.micro_batch >= other.micro_batch
        and c.machine.device_memory_gib <= other.machine.device_memory_gib
    )
