"""The largest micro-batches that fit the devices of one layout on one cluster.

Memory grows with the micro-batch, so bisection finds the largest that fits; only a single
micro-batch per step, whose gradients nothing accumulates, may need less than several smaller ones.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from orchestration.planning.cost.estimates import HOST_SHARE, held, host_need, passing
from orchestration.planning.cost.memory import Held
from orchestration.planning.model.configuration import Configuration, Offload, Recompute
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.places.predictions import Predictions


@dataclass(frozen=True, slots=True)
class Miss:
    """The configuration that is nearest to fitting."""

    need_gib: float
    layout: Layout
    batch: int
    recompute: Recompute
    offload: Offload


class Limit(NamedTuple):
    """The largest micro-batch that fits; 0: none does, and `miss` says by how much."""

    micro_batch: int
    """The largest of which a step takes several."""
    miss: Miss | None
    single: int = 0
    """The one that is a step of its own, if it fits."""

    @property
    def largest(self) -> int:
        """The largest of both."""
        return max(self.micro_batch, self.single)

    def holds(self, micro_batch: int) -> bool:
        """Return whether a micro-batch fits."""
        return micro_batch <= self.micro_batch or micro_batch == self.single


class Room(NamedTuple):
    """Memory of a cluster, and the recomputation with which least of it is needed."""

    device_gib: float
    host_gib: float | None
    """``None``: unknown, which counts as enough."""
    least: Recompute


class Memory:
    """Micro-batches that fit the devices of one layout on one cluster."""

    def __init__(
        self, layout: Layout, c: Configuration, room: Room, predictions: Predictions
    ) -> None:
        """Take the layout's configuration, whatever its work."""
        self._layout = layout
        self._configuration = c
        self._replicas = c.data
        self._room = room
        self._predictions = predictions
        self._needs = predictions.needs_of(layout, c.machine)
        self._passings = predictions.passings_of(layout, c.machine.accelerator)
        self._held: dict[tuple[Offload, bool], Held] = {}
        """States and buffers, by what is offloaded and whether a step has one micro-batch."""
        # Beyond what a pipeline has in flight, more micro-batches need no more memory.
        self._flying = max(2, 2 * layout.pipeline)
        self._hosts: dict[Offload, bool] = {}
        self._too_small: dict[Offload, bool] = {}
        self._nones: dict[tuple[int, Offload], Limit] = {}
        self._limits: dict[tuple[int, Recompute, Offload], Limit] = {}

    def limit(self, batch: int, recompute: Recompute, offload: Offload) -> Limit:
        """Return the largest micro-batch of a batch that fits."""
        if self.is_too_small(offload):
            return self._none(batch, offload)
        key = (batch, recompute, offload)
        limit = self._limits.get(key)
        if limit is None:
            limit = self._limits[key] = self._largest(batch, recompute, offload)
        return limit

    def is_too_small(self, offload: Offload) -> bool:
        """Return whether not even one sample of a batch fits, as far as formulas tell."""
        known = self._too_small.get(offload)
        if known is None:
            by_formula = self._predictions.by_formula
            known = self._too_small[offload] = not self._host_holds(offload) or (
                by_formula and self._need(1, 1, self._room.least, offload) > self._room.device_gib
            )
        return known

    def _largest(self, batch: int, recompute: Recompute, offload: Offload) -> Limit:
        room, samples = self._room.device_gib, batch // self._replicas

        def need(micro: int) -> float:
            return self._need(micro, samples // micro, recompute, offload)

        sizes = micro_batches(samples)
        single = sizes[-1] if need(sizes[-1]) <= room else 0
        if not single and self._need(1, samples, self._room.least, offload) > room:
            return self._none(batch, offload)
        fits = bisect_right(sizes[:-1], room, key=need)
        return Limit(sizes[fits - 1] if fits else 0, None, single)

    def _none(self, batch: int, offload: Offload) -> Limit:
        """Return that nothing fits, since one sample at a time does not."""
        count = min(batch // self._replicas, self._flying)
        limit = self._nones.get((count, offload))
        if limit is None:
            miss = None
            if self._host_holds(offload):
                least = self._room.least
                need = self._need(1, count, least, offload)
                miss = Miss(need, self._layout, batch, least, offload)
            limit = self._nones[count, offload] = Limit(0, miss)
        return limit

    def _need(self, micro: int, count: int, recompute: Recompute, offload: Offload) -> float:
        """Return the GiB of so many micro-batches in a step."""
        count = min(count, self._flying)
        key = (micro, count, recompute, offload)
        need = self._needs.get(key)
        if need is None:
            c = self._configuration.working(
                global_batch=micro * count * self._replicas, micro_batch=micro,
                recompute=recompute, offload=offload,
            )  # fmt: skip
            need = self._needs[key] = self._predicted(c, key)
        return need

    def _predicted(self, c: Configuration, key: tuple[int, int, Recompute, Offload]) -> float:
        """Predict a need from its parts, which much work has in common."""
        if not self._predictions.by_formula:
            return self._predictions.memory_need(c)
        micro, count, recompute, offload = key
        states = self._held.get((offload, count == 1))
        if states is None:
            states = self._held[offload, count == 1] = held(c)
        activations = self._passings.get((micro, count, recompute))
        if activations is None:
            activations = self._passings[micro, count, recompute] = passing(c)
        return self._predictions.joint_need(c, states, activations)

    def _host_holds(self, offload: Offload) -> bool:
        """Return whether offloaded states fit the host."""
        host = self._room.host_gib
        if offload == "none" or host is None:
            return True
        if offload not in self._hosts:
            c = self._configuration.working(
                global_batch=self._replicas, micro_batch=1,
                recompute=self._room.least, offload=offload,
            )  # fmt: skip
            self._hosts[offload] = host_need(c) <= HOST_SHARE * host
        return self._hosts[offload]


@cache
def micro_batches(samples: int) -> tuple[int, ...]:
    """Return the micro-batches that divide a replica's samples: 2^n and 3 x 2^n, ascending.

    >>> micro_batches(12)
    (1, 2, 3, 4, 6, 12)
    """
    powers = (1 << n for n in range(samples.bit_length()))
    sizes = (size for power in powers for size in (power, power // 2 * 3))
    return tuple(size for size in sizes if size and samples % size == 0)
