"""Layouts on one cluster that compute alike, with the work that fits them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from itertools import product
from typing import NamedTuple

from orchestration.planning.cost.data_parallel import Exchange
from orchestration.planning.cost.estimates import (
    HOST_SHARE,
    host_need,
    margin,
    replica_seconds,
)
from orchestration.planning.cost.step_time import ROUNDED, MicroTime, ReplicaTime
from orchestration.planning.model.configuration import Offload, Recompute
from orchestration.planning.search.layouts import Kin
from orchestration.planning.search.measured.corrections import MemoryCorrection
from orchestration.planning.search.places.memory import LaidOut, Needs, Room, micro_batches
from orchestration.planning.search.places.place import Place
from orchestration.planning.search.places.predictions import Predictions

Micros = dict[tuple[int, Recompute], MicroTime]
"""Times of a micro-batch, by its samples and what is recomputed."""


class Known(NamedTuple):
    """Predictions that clusters share, of layouts that compute alike."""

    needs: Needs
    micros: Micros
    every: Predictions


class Places:
    """Layouts on one cluster that compute alike: they differ in ranks that share states."""

    def __init__(self, kin: Kin, laid_out: LaidOut, room: Room, known: Known) -> None:
        """Take what is known of their needs and times."""
        configurations, offloads = laid_out
        self._needs, self._micros, self._predictions = known
        self.configuration = configurations[0]
        self.replicas = self.configuration.data
        self.each = tuple(
            Place(index, layout, c, offloads, self._predictions)
            for index, (layout, c) in enumerate(zip(kin.layouts, configurations, strict=True))
        )
        self._layout = kin.first
        self._room = room
        self._margin = margin(self.configuration.machine.accelerator, self.configuration.model)
        self._hosts: dict[tuple[int, Offload], bool] = {}
        self._corrections: dict[tuple[Recompute, Offload], MemoryCorrection | None] = {}
        self._least: dict[tuple[int, Recompute], float] = {}

    @property
    def least_factor(self) -> float:
        """The least by which measurements change the time of a step."""
        return self._predictions.least_factor

    def sizes(self, samples: int) -> Iterator[int]:
        """Return the micro-batches of so many samples that may fit, the largest first."""
        several, single = self._largest
        for micro in reversed(micro_batches(samples)):
            if micro <= (single if micro == samples else several):
                yield micro

    def may_fit(self, micro: int, count: int, recompute: Recompute) -> bool:
        """Return whether so many micro-batches in a step may fit one of the layouts."""
        several, single = self._limits[recompute]
        return micro <= (single if count == 1 else several)

    @cached_property
    def _largest(self) -> tuple[int, int]:
        several, single = zip(*self._limits.values(), strict=True)
        return max(several), max(single)

    @cached_property
    def _limits(self) -> dict[Recompute, tuple[int, int]]:
        """The largest micro-batches that may fit: of several in a step, and of one."""
        return {kind: self._limit(kind) for kind in self._room.recomputes}

    def _limit(self, recompute: Recompute) -> tuple[int, int]:
        sizes = micro_batches(3 << self._room.batch.bit_length())
        several = bisect_left(
            sizes, True, key=lambda micro: self._is_too_large(micro, 2, recompute)
        )
        single = several
        while single < len(sizes) and not self._is_too_large(sizes[single], 1, recompute):
            single += 1
        return sizes[several - 1] if several else 0, sizes[single - 1] if single else 0

    def _is_too_large(self, micro: int, count: int, recompute: Recompute) -> bool:
        return self.least_need(micro, count, recompute) > self._room.device_gib

    def least_need(self, micro: int, count: int, recompute: Recompute) -> float:
        """Return GiB that none of the layouts needs less of, whatever it offloads."""
        return self._needs.least(micro, count, recompute) * self._least_margin

    @cached_property
    def _least_margin(self) -> float:
        """The least of all needs over those expected; 0: no formula expects any."""
        every = product(self._room.recomputes, self.each[0].offloads)
        corrections = [self._correction(*each) for each in every]
        return min(each.need(self._margin, 0) if each else 0.0 for each in corrections) * ROUNDED

    def _correction(self, recompute: Recompute, offload: Offload) -> MemoryCorrection | None:
        """Return what measurements say of a need, whatever the number of ranks with its states."""
        key = (recompute, offload)
        if key not in self._corrections:
            c = self.each[0].working(self.replicas, 1, recompute, offload)
            self._corrections[key] = self._predictions.of_memory(c)
        return self._corrections[key]

    def fits(self, micro: int, count: int, recompute: Recompute) -> bool:
        """Return whether so many micro-batches in a step fit one of the layouts."""
        every = (self.offload(place, micro, count, recompute) for place in self.each)
        return any(offload is not None for offload in every)

    def offload(self, place: Place, micro: int, count: int, recompute: Recompute) -> Offload | None:
        """Return the least that a layout has to offload for work to fit; ``None``: it does not."""
        for offload in place.offloads:
            need = self.need(place, micro, count, recompute, offload)
            if need <= self._room.device_gib and self.host_holds(place, offload):
                return offload
        return None

    def need(
        self, place: Place, micro: int, count: int, recompute: Recompute, offload: Offload
    ) -> float:
        """Return the GiB of so many micro-batches in a step."""
        correction = self._correction(recompute, offload)
        if correction is None:
            return place.measured_need(micro, count, recompute, offload)
        need = self._needs.need(place.index, micro, count, recompute, offload)
        return correction.need(need * self._margin, micro)

    def host_holds(self, place: Place, offload: Offload) -> bool:
        """Return whether offloaded states fit the host."""
        host = self._room.host_gib
        if offload == "none" or host is None:
            return True
        key = (place.index, offload)
        if key not in self._hosts:
            c = place.working(self.replicas, 1, self._room.least, offload)
            self._hosts[key] = host_need(c) <= HOST_SHARE * host
        return self._hosts[key]

    def micro_time(self, micro: int, recompute: Recompute) -> MicroTime:
        """Return the time of a micro-batch."""
        known = self._micros.get((micro, recompute))
        if known is None:
            c = self.each[0].working(micro * self.replicas, micro, recompute, "none")
            known = self._predictions.micro_seconds(c, self._layout)
            self._micros[micro, recompute] = known
        return known

    def least_s(self, micro: int, recompute: Recompute) -> float:
        """Return the least time that a micro-batch adds to a step, whatever is exchanged."""
        return self.micro_time(micro, recompute).least * self.least_factor

    def least_sharded_s(self, micro: int, recompute: Recompute) -> float:
        """Return the same with what ranks exchange in every micro-batch: states, with ZeRO 3."""
        least = self._least.get((micro, recompute))
        if least is None:
            least = self.least_s(micro, recompute)
            if self.configuration.zero >= 3:
                replica = self.replica_time(micro, 1, recompute)
                exposed = replica.exposed(self._least_exchange)
                least += exposed * ROUNDED * self.least_factor
            self._least[micro, recompute] = least
        return least

    @cached_property
    def _least_exchange(self) -> Exchange:
        """The least of each part of what the layouts exchange."""
        return Exchange(
            *map(min, zip(*(place.ranks.exchanged for place in self.each), strict=True))
        )

    def replica_time(self, micro: int, count: int, recompute: Recompute) -> ReplicaTime:
        """Return the part of a step's time that the layouts have in common."""
        c = self.each[0].working(micro * count * self.replicas, micro, recompute, "none")
        return replica_seconds(c, self.micro_time(micro, recompute))
