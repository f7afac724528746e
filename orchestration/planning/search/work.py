"""Work that a search tries, and predictions that its clusters share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from orchestration.planning.cost.memory import passing_parts
from orchestration.planning.model.configuration import Attention, Offload, Recompute
from orchestration.planning.search.layouts import Kin, kins, layouts
from orchestration.planning.search.places.alike import Known, Micros
from orchestration.planning.search.places.bounds import Bounds, Devices
from orchestration.planning.search.places.memory import LaidOut, Needs, Passings
from orchestration.planning.search.places.predictions import Predictions
from orchestration.planning.search.strategy_choice import StrategyCache

if TYPE_CHECKING:
    from orchestration.catalog import Instance
    from orchestration.planning.search.task import Task


Kernels = tuple[Attention, bool, tuple[Offload, ...]]
"""Attention's kernel, whether the device is a Neuron one, and what may be offloaded: what
configurations differ in beside machines."""


class Shared:
    """Predictions that the searches for a task share."""

    def __init__(self, task: Task) -> None:
        """Begin without any."""
        self.task = task
        self.predictions = Predictions(task)
        self.spans: dict[int, tuple[int, float]] = {}
        """Steps of the whole training, and seconds beside them, by batch."""
        self.choices: dict[object, StrategyCache] = {}
        """Strategies that were chosen, by those allowed."""
        self._bounds: dict[Devices, Bounds] = {}
        self._kins: dict[tuple[int, int, bool], tuple[Kin, ...]] = {}
        self._micros: dict[object, Micros] = {}
        self._passings: dict[object, Passings] = {}
        self._needs: dict[tuple[Kernels, Kin], Needs] = {}

    def bounds_of(self, devices: Devices) -> Bounds:
        """Return the bounds on every cluster of the same devices."""
        if devices not in self._bounds:
            self._bounds[devices] = Bounds(self.task, devices, self.predictions)
        return self._bounds[devices]

    def kins_of(self, instance: Instance, count: int) -> tuple[Kin, ...]:
        """Return every layout of the task on this many instances, simple ones first."""
        key = (instance.devices, count, instance.family.startswith("trn"))
        if key not in self._kins:
            self._kins[key] = kins(layouts(self.task, instance, count))
        return self._kins[key]

    def known_of(self, cluster: tuple[str, int], kin: Kin, needs: Needs) -> Known:
        """Return what is known of layouts on instances; further ones change no micro-batch."""
        name, count = cluster
        micros = self._micros.setdefault((name, count > 1, kin.first.alike), {})
        return Known(needs, micros, self.predictions)

    def needs_of(self, kernels: Kernels, kin: Kin, lay_out: Callable[[Kin], LaidOut]) -> Needs:
        """Return the known needs of memory, which are the same on machines with such kernels.

        `lay_out`: makes the configurations on some machine.
        """
        needs = self._needs.get((kernels, kin))
        if needs is None:
            laid_out, first = lay_out(kin), kin.first
            parts = passing_parts(laid_out.configurations[0])
            passings = self._passings.setdefault((kernels, first.family, first.zero, parts), {})
            needs = self._needs[kernels, kin] = Needs(laid_out, passings, self.predictions)
        return needs


class Stream(NamedTuple):
    """The ways to compute a batch by layouts that compute alike."""

    bound: float
    """The lowest bound of all of them: seconds of the whole training."""
    order: int
    """Order of what has the same bound."""
    batch: int
    samples: int
    """Samples of each replica."""
    kin: Kin


class Work(NamedTuple):
    """One way to compute a batch."""

    batch: int
    micro_batch: int
    micro_batches: int
    """Number of them in a step of one replica."""
    recompute: Recompute
