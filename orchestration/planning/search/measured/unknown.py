"""Predictions for models that no formula describes, from measurements of their training.

The time of a step is that of computing, of which nothing is known before it is measured, and of
exchanging gradients and updating weights, which depend on the number of parameters. Computing grows
with the samples of a device; that of other devices is guessed from their rates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from functools import cached_property
from math import exp, hypot, log, log2, sqrt
from typing import TYPE_CHECKING, Final

from orchestration.planning.cost.coefficients import fitted
from orchestration.planning.cost.collectives import cluster_links
from orchestration.planning.cost.data_parallel import data_time, optimizer_time
from orchestration.planning.cost.devices import device
from orchestration.planning.cost.prediction import Prediction
from orchestration.planning.cost.rates import rates
from orchestration.planning.cost.step_time import StepTime
from orchestration.planning.model.configuration import Configuration, Recompute
from orchestration.planning.model.layer_sizes import sizes
from orchestration.planning.search.measured.known import Known, known_of
from orchestration.planning.search.measured.kriging import Errors, Observation
from orchestration.planning.search.measured.memory import MeasuredMemory

if TYPE_CHECKING:
    from orchestration.planning.search.task import Task

_DEVIATIONS: Final = (5.0, 0.3, 0.1, 0.08, 0.05)
"""Standard deviations of the logarithm of a device's computing time: of the model, of which nothing
is known; of the accelerator beside others; of the micro-batch; of the cluster's size; and the
rest. `tests/data/planner/no_formula.csv` has published trainings on which they are tried."""

_NOISE: Final = 0.03
_TOTAL: Final = sqrt(sum(each**2 for each in _DEVIATIONS))
_SHARES: Final = tuple((each / _TOTAL) ** 2 for each in _DEVIATIONS)
_INTERVAL: Final = 1.2816
"""Half width of an 80 % interval, in standard deviations."""

_OPERATIONS: Final = 1000.0
"""Operations of one sample per parameter, before anything is measured: 960 of ResNet-50, 1,200 of
ViT-B/16, 2,400 of Stable Diffusion's U-Net, but 6 of a perceptron."""

_REACHED: Final = 0.3
"""Share of a device's rates that a training reaches, before anything is measured."""

_BALANCE: Final = 170e12 / 1e12
"""Operations per byte of memory traffic that weigh both rates of an A100 alike."""

_ALONE: Final = 0.5
"""Samples whose time a device loses with every micro-batch, however large."""


class Measured:
    """Predictions of one training, all from what was measured of it."""

    def __init__(self, task: Task) -> None:
        """Take the measurements of the task that are of its model."""
        every = list(known_of(task, _unmeasured))
        self.known = tuple(each for each in every if isinstance(each, Known))
        self.left_out = Counter(each for each in every if isinstance(each, str))
        """Measurements that say nothing of the task, by the reason."""
        self._memory = MeasuredMemory(self.known)
        self._micros: dict[str, list[int]] = {}
        """The micro-batches that were measured on an accelerator."""
        for each in self.known:
            if each.measurement.step_time_s is not None:
                c = each.configuration
                self._micros.setdefault(c.machine.accelerator, []).append(c.micro_batch)

    @cached_property
    def _errors(self) -> Errors:
        return Errors(_SHARES, list(self._observed()))

    def _observed(self) -> Iterator[Observation]:
        for each in self.known:
            if (measured := each.measurement.step_time_s) is not None:
                c = each.configuration
                error = log(_computing(c, measured) / _guess(c))
                yield Observation(_keys(c, c.micro_batch), error, _TOTAL, _NOISE)

    @property
    def timed(self) -> bool:
        """True if the time of any step is known."""
        return bool(self._micros)

    def step_seconds(self, c: Configuration) -> float:
        """Predict the seconds of one optimizer step."""
        return _step(c, self._seconds(c)).total

    def _seconds(self, c: Configuration) -> float:
        return _guess(c) * exp(self._errors.error(_keys(c, self._nearest(c)), _TOTAL))

    def _nearest(self, c: Configuration) -> int:
        """Return the measured micro-batch whose efficiency one is taken to have."""
        known = self._micros.get(c.machine.accelerator, ())
        return min(known, key=lambda each: abs(log(each / c.micro_batch)), default=c.micro_batch)

    def least_seconds(self, c: Configuration, kinds: Iterable[Recompute]) -> tuple[float, ...]:
        """Return lower bounds on the computing of a step, on any cluster of the same devices.

        There is one for each kind of recomputation.
        """
        least = 0.0
        if self.timed:
            guessed = c.machine.accelerator not in self._micros
            margin = 2 * _DEVIATIONS[1] if guessed else 0.0
            least = _guess(c) * exp(self._errors.least() - margin)
        return tuple(least for _ in kinds)

    def memory_need(self, c: Configuration) -> float:
        """Return the GiB that the fullest device needs, as far as that was measured."""
        return self._memory.most_gib(c)

    def predict(self, c: Configuration) -> Prediction:
        """Return the prediction for a configuration."""
        near = self._nearest(c)
        estimate = self._errors.estimate(_keys(c, near), _TOTAL)
        apart = _DOUBLING * log2(c.micro_batch / near)
        deviation = hypot(estimate.deviation, apart, _NOISE)
        return _prediction(c, self._seconds(c), deviation, self._memory)


_ANYTHING: Final = 2.0
"""Standard deviation that only a model has of which no step was measured."""

_DOUBLING: Final = 0.08
"""Standard deviation, of the logarithm, that each doubling of a measured micro-batch adds."""


def _unmeasured(c: Configuration) -> Prediction:
    return _prediction(c, _guess(c), _TOTAL, MeasuredMemory(()))


def _prediction(
    c: Configuration, seconds: float, deviation: float, memory: MeasuredMemory
) -> Prediction:
    spread = exp(_INTERVAL * deviation)
    time, use, margin = _step(c, seconds), memory.use(c), memory.margin(c)
    return Prediction(
        time=time,
        memory=use,
        step_time_s=time.total,
        low_s=0.0 if deviation > _ANYTHING else _step(c, seconds / spread).total,
        high_s=_step(c, seconds * spread).total,
        tokens_per_s=c.tokens / time.total,
        memory_gib=use.total,
        memory_low_gib=use.total / margin,
        memory_high_gib=use.total * margin,
        fits=memory.fits(c),
    )


def _keys(c: Configuration, micro: int) -> tuple[Hashable, ...]:
    """Return what an error is shared by, in the order of `_DEVIATIONS`."""
    accelerator = c.machine.accelerator
    return (
        "training",
        accelerator,
        (accelerator, micro, c.precision),
        (accelerator, c.machine.devices, c.machine.devices_per_node),
        c,
    )


def _guess(c: Configuration) -> float:
    """Return the seconds of computing in one step, before anything is measured."""
    r = rates(c, device(c.machine.accelerator), fitted())
    rate = _REACHED * sqrt(r.matmul * r.memory * _BALANCE)
    samples = c.global_batch / c.data * (1 + _ALONE / c.micro_batch)
    return _OPERATIONS * c.model.parameters * samples / rate


def _step(c: Configuration, computing: float) -> StepTime:
    """Return the parts of a step, given the seconds of its computing."""
    d, k, s = device(c.machine.accelerator), fitted(), sizes(c.model, c.sequence)
    forward, backward = computing / 3, 2 * computing / 3
    m = c.micro_batches
    return StepTime(
        forward=forward, backward=backward, recompute=0.0, head=0.0, tensor=0.0, pipeline=0.0,
        data=data_time(c, s, cluster_links(c, d, k), forward=forward / m, backward=backward / m),
        optimizer=optimizer_time(c, s, rates(c, d, k), k),
        other=min(k.step_overhead_ms * 1e-3, _LOST * computing),
    )  # fmt: skip


_LOST: Final = 0.2
"""Share of computing that launches and bookkeeping take at most, of steps that are very short."""


def _computing(c: Configuration, measured: float) -> float:
    """Return the seconds of computing that a measured step leaves, beside what is predicted."""
    computing = measured
    for _ in range(_ROUNDS):
        rest = _step(c, computing)
        beside = rest.total - rest.forward - rest.backward
        computing = max(_LEAST * measured, measured - beside)
    return computing


_ROUNDS: Final = 4
"""Computing hides communication, so that each depends on the other."""

_LEAST: Final = 0.05
"""Share of a step that computing takes at least, whatever is predicted of the rest."""
