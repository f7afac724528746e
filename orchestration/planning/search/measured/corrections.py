"""Corrections of predictions by measurements of the same training.

Nothing changes without measurements. With them, each prediction is shifted by the part of its error
that measured configurations share with it, and its interval shrinks as far as they say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import fields, replace
from functools import cached_property, lru_cache
from math import exp, hypot, inf, log
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from orchestration.planning.cost.estimates import (
    memory_need,
    memory_room,
    step_seconds,
)
from orchestration.planning.cost.memory import MemoryUse
from orchestration.planning.cost.prediction import (
    Prediction,
    fitting,
    predict,
    uncertainty,
)
from orchestration.planning.cost.step_time import StepTime
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.search.measured.known import Known, known_of
from orchestration.planning.search.measured.kriging import Errors, Estimate, Observation
from orchestration.planning.search.measured.unknown import Measured
from orchestration.planning.search.preference import extrapolates

if TYPE_CHECKING:
    from orchestration.planning.search.task import Task

DEVIATIONS: Final = 1.2816
"""Half width of an 80 % interval, in standard deviations."""

NOISE: Final = 0.03
"""Standard deviation of a measured step time or memory: a few steps stand for a whole training."""

SHARES: Final = (0.2, 0.1, 0.2, 0.1, 0.1, 0.3)
"""Shares of an error's variance: of the training, the accelerator, the layout, the work of one
device, the size of the cluster, and the rest, which is the configuration's own. Of the shares that
were tried on the published measurements, these hold the intervals best."""

_MEMORY_SHARES: Final = (0.4, 0.1, 0.3, 0.2)


class MemoryCorrection(NamedTuple):
    """Factors on a need of memory, and what is known not to fit."""

    before: float = 1.0
    """Margin of the need without measurements."""
    factor: float = 1.0
    margin: float = 1.0
    lacking: float = inf
    """The smallest micro-batch that ran out of memory."""
    full_gib: float = 0.0

    def need(self, need_gib: float, micro_batch: int) -> float:
        """Return the corrected need of a micro-batch."""
        corrected = need_gib / self.before * self.factor * self.margin
        return corrected if micro_batch < self.lacking else max(corrected, self.full_gib)


class Corrections:
    """Predictions of one training's configurations, corrected by measurements of it."""

    def __init__(self, task: Task) -> None:
        """Take the measurements of the task that are of its model."""
        self._task = task
        every = list(known_of(task, predict))
        self.known = tuple(each for each in every if isinstance(each, Known))
        self.left_out = Counter(each for each in every if isinstance(each, str))
        """Measurements that say nothing of the task, by the reason."""
        self._margins: dict[tuple[Hashable, ...], float] = {}
        self._lacking = tuple(
            each.configuration for each in self.known if each.measurement.out_of_memory
        )

    @cached_property
    def _time(self) -> Errors:
        return Errors(SHARES, list(self._time_errors()))

    @cached_property
    def _memory(self) -> Errors:
        return Errors(_MEMORY_SHARES, list(_memory_errors(self.known)))

    def _time_errors(self) -> Iterator[Observation]:
        for each in self.known:
            if (measured := each.measurement.step_time_s) is not None:
                c = each.configuration
                deviation = self._deviation(c)
                error = log(measured / each.prediction.step_time_s)
                yield Observation(time_keys(c), error, deviation, NOISE)

    def _deviation(self, c: Configuration) -> float:
        """Return the standard deviation of a step time's logarithm, without measurements."""
        factor = 2.0 if extrapolates(self._task, c.machine.accelerator) else 1.0
        return factor * uncertainty(c).time / DEVIATIONS

    def step_seconds(self, c: Configuration) -> float:
        """Predict the seconds of one optimizer step."""
        if not self.known:
            return step_seconds(c)
        return step_seconds(c) * exp(self._time.error(time_keys(c), self._deviation(c)))

    @cached_property
    def least_factor(self) -> float:
        """The least by which measurements change a time."""
        return exp(self._time.least()) if self.known else 1.0

    def memory_need(self, c: Configuration) -> float:
        """Return the GiB that the fullest device needs at the high end of the prediction."""
        return self.of_memory(c).need(memory_need(c), c.micro_batch)

    def of_memory(self, c: Configuration) -> MemoryCorrection:
        """Return the correction of what a configuration needs, whatever its micro-batch.

        The need still grows with it; what ran out of memory needs more than there is, and so does
        all that needs as much.
        """
        if not self.known:
            return MemoryCorrection()
        return MemoryCorrection(
            before=exp(uncertainty(c).memory),
            factor=self._memory_factor(c),
            margin=self._memory_margin(c),
            lacking=min(
                (each.micro_batch for each in self._lacking if _is_alike(c, each)), default=inf
            ),
            full_gib=_FULL * c.machine.device_memory_gib,
        )

    def _memory_factor(self, c: Configuration) -> float:
        return exp(self._memory.error(_memory_keys(c), _memory_deviation(c)))

    def _memory_margin(self, c: Configuration) -> float:
        keys = _memory_keys(c)
        if keys not in self._margins:
            deviation = _memory_deviation(c)
            self._margins[keys] = _spread(self._memory.estimate(keys, deviation), deviation)
        return self._margins[keys]

    def predict(self, c: Configuration) -> Prediction:
        """Return the prediction for a configuration, whose intervals hold what was measured."""
        p = predict(c)
        if not self.known:
            return p
        deviation = self._deviation(c)
        estimate = self._time.estimate(time_keys(c), deviation)
        factor, spread = exp(estimate.error), _spread(estimate, deviation)
        room, margin = self._memory_factor(c), self._memory_margin(c)
        step, shown, memory = p.step_time_s * factor, p.memory_gib * room, _scaled(p.memory, room)
        return replace(
            p,
            time=_scaled(p.time, factor),
            memory=memory,
            step_time_s=step,
            low_s=step / spread,
            high_s=step * spread,
            tokens_per_s=p.tokens_per_s / factor,
            memory_gib=shown,
            memory_low_gib=shown / margin,
            memory_high_gib=shown * margin,
            fits=fitting(c, memory.need, margin),
        )


@lru_cache(maxsize=32)
def corrections(task: Task) -> Corrections | Measured:
    """Return the corrections of a task by its measurements; none, without measurements.

    Of a model without a formula, all predictions come from measurements.
    """
    return Measured(task) if task.model.kind == "custom" else Corrections(task)


def _spread(estimate: Estimate, deviation: float) -> float:
    """Return the high end of an interval over the expected value."""
    rest = estimate.deviation
    # What no measurement speaks about is as sure as without any.
    return exp(DEVIATIONS * (hypot(rest, NOISE) if rest < deviation else rest))


def _memory_errors(known: Iterable[Known]) -> Iterator[Observation]:
    for each in known:
        c, p, measured = each.configuration, each.prediction, each.measurement
        if measured.out_of_memory:
            error = max(0.0, log(memory_room(c) / p.memory.need))
        elif measured.peak_memory_gib is not None and measured.peak_memory_gib > p.memory.weights:
            # Where memory is short, the allocator frees what it would have kept.
            error = log(measured.peak_memory_gib / min(p.memory_gib, memory_room(c)))
        else:
            continue
        yield Observation(_memory_keys(c), error, _memory_deviation(c), NOISE)


def time_keys(c: Configuration) -> tuple[Hashable, ...]:
    """Return what the error of a predicted step time is shared by, in the order of `SHARES`."""
    accelerator = c.machine.accelerator
    return (
        "training",
        accelerator,
        (c.tensor, c.pipeline, c.context, c.expert, c.zero, c.offload),
        (accelerator, c.micro_batch, c.recompute, c.sequence, c.precision),
        (accelerator, c.machine.devices),
        c,
    )


def _memory_deviation(c: Configuration) -> float:
    return uncertainty(c).memory / DEVIATIONS


def _memory_keys(c: Configuration) -> tuple[Hashable, ...]:
    degrees = (c.tensor, c.pipeline, c.context, c.expert, c.zero, c.offload)
    return (
        "training",
        c.machine.accelerator,
        degrees,
        (degrees, c.recompute, c.sequence, c.machine.devices),
    )


def _is_alike(c: Configuration, other: Configuration) -> bool:
    """Return whether two configurations need the same memory for each micro-batch."""
    return c.machine == other.machine and _memory_keys(c) == _memory_keys(other)


_FULL: Final = 1.001
"""Need of what ran out of memory, over the device's memory, if it was predicted to fit."""

Parts = TypeVar("Parts", StepTime, MemoryUse)


def _scaled(parts: Parts, factor: float) -> Parts:
    return replace(
        parts, **{each.name: getattr(parts, each.name) * factor for each in fields(parts)}
    )
