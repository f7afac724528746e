"""The fastest configuration of a task on one cluster.

Configurations are tried in the order of a lower bound on their time: computing alone, without any
communication, start or checkpoint. The first whose bound is above the best time ends the search, so
the answer is the same as from trying all. A configuration's memory is predicted only if it would
take less time than the best so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from math import inf
from typing import Final

from orchestration.catalog import Instance
from orchestration.planning.cost.estimates import replica_seconds
from orchestration.planning.cost.prediction import USABLE
from orchestration.planning.cost.step_time import MicroTime, ReplicaTime
from orchestration.planning.model.configuration import (
    Configuration,
    LayoutFamily,
    Offload,
    Recompute,
)
from orchestration.planning.search.answers.besides import besides
from orchestration.planning.search.configurations import attention, configuration, machine_of
from orchestration.planning.search.layouts import Degrees, Layout
from orchestration.planning.search.places.bounds import Way
from orchestration.planning.search.places.memory import Limit, Miss, Room
from orchestration.planning.search.places.place import Candidate, Place, order
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Task
from orchestration.planning.search.work import Group, Known, Shared, Work


class Cluster:
    """A number of instances of one type, as a place for a configuration."""

    def __init__(
        self,
        task: Task,
        space: Space,
        instance: Instance,
        count: int,
        shared: Shared | None = None,
    ) -> None:
        """Share predictions with the other clusters of a search."""
        self.task = task
        self.space = space
        self.instance = instance
        self.count = count
        self.nearest: Miss | None = None
        """Nearest of the layouts that do not fit, among those that were tried."""
        self._accelerator = instance.accelerator or ""
        # A fused attention kernel stores no scores to recompute.
        fused = attention(task, self._accelerator) != "unfused"
        self.recomputes: tuple[Recompute, ...] = tuple(
            kind for kind in space.recompute if not (fused and kind == "attention")
        )
        """Kinds of recomputation that this cluster can use."""
        self._offloads = {
            kind: tuple(offloads(space, is_sharded=kind[0], shards_weights=kind[1]))
            for kind in ((False, False), (True, False), (True, True))
        }
        least: Recompute = "full" if "full" in self.recomputes else self.recomputes[-1]
        self._room = Room(
            USABLE * (instance.device_memory_gib or 0.0), instance.host_memory_gib, least
        )
        self._shared = shared or Shared(task)
        self._predictions = self._shared.predictions
        self._has_formula = task.model.kind != "custom"
        self._known = self._shared.clusters.setdefault((instance.name, count), Known())
        self._bounds = self._shared.bounds_of(
            (self._accelerator, instance.interconnect_gb_per_s, self.recomputes)
        )

    def works(self, layouts: Iterable[Layout]) -> Iterator[Work]:
        """Return all work for some layouts, that with the lowest bound first."""
        return self._works(layouts, Fastest(inf))

    def _works(self, layouts: Iterable[Layout], best: Fastest) -> Iterator[Work]:
        """Return the work for some layouts that may be faster than the best, as that is found."""
        batches = enumerate(self._batches(layouts))
        return merge(*(self._works_of(order, *batch, best) for order, batch in batches))

    def _works_of(self, order: int, batch: int, group: Group, best: Fastest) -> Iterator[Work]:
        limits = {kind: [inf] * len(group.layouts) for kind in self.recomputes}
        for bound, micro, recompute in self._ways(batch, group):
            if best.candidate is not None and bound > best.most_s:
                return
            if best.candidate is None or self._may_be_faster(batch, micro, recompute, group, best):
                yield Work(bound, order, micro, recompute, batch, group, limits[recompute])
                if not any(limits[recompute]) and all(place.is_barren for place in group.places):
                    return

    def least_s(self, layouts: Iterable[Layout]) -> float:
        """Return the lowest bound of all work for some layouts."""
        return min(self._ways(batch, group)[0][0] for batch, group in self._batches(layouts))

    def _batches(self, layouts: Iterable[Layout]) -> Iterator[tuple[int, Group]]:
        """Group layouts by what their computing depends on, for each batch that they divide."""
        groups: dict[tuple[int, Degrees], list[Layout]] = {}
        for layout in layouts:
            groups.setdefault((self.replicas(layout), layout.degrees), []).append(layout)
        for (replicas, degrees), same in groups.items():
            group = Group(replicas, degrees, tuple(same))
            for batch in self.task.batch.sizes:
                if batch % replicas == 0:
                    yield batch, group

    def _ways(self, batch: int, group: Group) -> list[Way]:
        return self._bounds.ways(batch, batch // group.replicas, group.degrees)

    def best(
        self, layouts: Iterable[Layout], longest_s: float = inf
    ) -> tuple[float, Candidate] | None:
        """Return the fastest configuration that fits, after the lowest bound of any that does.

        None, if no computing that fits can be done in time.
        """
        every = tuple(layouts)
        tried = (self.fastest(every, longest_s, kinds) for kinds in self.tiers)
        return next((found for found in tried if found is not None), None)

    @property
    def tiers(self) -> tuple[tuple[Offload, ...], ...]:
        """States that may be offloaded, and if nothing fits so, or in time, which else.

        Unless it was measured, offloading is for what does not fit otherwise: it takes longer than
        predicted nearly wherever others published it (`docs/planning.md`).
        """
        if self._predictions.by_formula and "none" in self.space.offload:
            return (("none",), self.space.offload)
        return (self.space.offload,)

    def fastest(
        self, layouts: Iterable[Layout], longest_s: float, offloads: Sequence[Offload]
    ) -> tuple[float, Candidate] | None:
        """Return the fastest configuration that fits, as `best` does, with some offloading."""
        best = Fastest(longest_s)
        # What fits with less recomputed takes no longer than with more, whose bound is higher,
        # unless it has to offload for it, or measurements say so.
        by_formula = self._predictions.by_formula
        fitted: set[tuple[Place, int, int]] = set()
        for work in self._works(layouts, best):
            if work.bound > best.most_s:
                break
            replicas: Replicas = {}
            for index, place in enumerate(self._places(work.group)):
                same = (place, work.batch, work.micro_batch)
                if work.micro_batch > work.limits[index] or same in fitted:
                    continue
                if best.candidate is not None and not self._may_beat(
                    best.candidate, place, work, replicas
                ):
                    continue
                candidate = self._fitting(index, place, work, offloads)
                if candidate is None:
                    continue
                if by_formula and candidate.configuration.offload == "none":
                    fitted.add(same)
                best.take(candidate, work.bound)
        return None if best.candidate is None else (best.least_s, best.candidate)

    def _may_be_faster(
        self, batch: int, micro: int, recompute: Recompute, group: Group, best: Fastest
    ) -> bool:
        """Return whether all that happens inside replicas may take less time than the best."""
        if not self._has_formula:
            return True
        repeated = batch // group.replicas // micro
        for kin in self._kins(group):
            least = self._micro_time(kin, group, micro, recompute).least
            if self._seconds(batch, repeated * kin.least_s(least)) < best.most_s:
                return True
        return False

    def _may_beat(self, best: Candidate, place: Place, work: Work, replicas: Replicas) -> bool:
        """Return whether some work of a layout may take less time than the best known, if it fits.

        `replicas`: times of this work that layouts have in common.
        """
        if not self._has_formula:
            return True
        replica = replicas.get(place.kin)
        if replica is None:
            micro = self._micro_time(place, work.group, work.micro_batch, work.recompute)
            c = place.working(work.batch, work.micro_batch, work.recompute, "none")
            replica = replicas[place.kin] = replica_seconds(c, micro)
        seconds = self._seconds(work.batch, place.least_step_s(replica))
        return order(seconds, place.layout, work.batch, work.micro_batch) < best.order

    def _micro_time(
        self, place: Place, group: Group, micro: int, recompute: Recompute
    ) -> MicroTime:
        key = (place.kin, group.degrees, micro, recompute)
        known = self._known.micros.get(key)
        if known is None:
            c = place.working(micro * group.replicas, micro, recompute, "none")
            known = self._known.micros[key] = self._predictions.micro_seconds(c, place.layout)
        return known

    def _seconds(self, batch: int, step_s: float) -> float:
        """Return the seconds of the whole training."""
        known = self._shared.spans.get(batch)
        if known is None:
            span = (self.task.steps(batch), besides(self.task, batch).seconds)
            known = self._shared.spans[batch] = span
        return known[0] * step_s + known[1]

    def holds(self, layouts: Iterable[Layout]) -> bool:
        """Return whether any batch fits in any of some layouts, however long it takes."""
        return any(
            self._limit(place, batch, self._room.least, offload).largest
            for batch, group in self._batches(layouts)
            for place in self._places(group)
            for offload in place.offloads
        )

    def _fitting(
        self, index: int, place: Place, work: Work, offloads: Sequence[Offload]
    ) -> Candidate | None:
        """Return the configuration that offloads no more than it has to, which only costs time."""
        largest = 0
        for offload in place.offloads:
            if offload not in offloads:
                continue
            limit = self._limit(place, work.batch, work.recompute, offload)
            if limit.holds(work.micro_batch):
                return self._candidate(place, work, offload)
            largest = max(largest, limit.largest)
        work.limits[index] = largest
        return None

    def _limit(self, place: Place, batch: int, recompute: Recompute, offload: Offload) -> Limit:
        """Return the largest micro-batch that fits."""
        limit = place.memory.limit(batch, recompute, offload)
        miss = limit.miss
        if miss and (self.nearest is None or miss.need_gib < self.nearest.need_gib):
            self.nearest = miss
        return limit

    def _candidate(self, place: Place, work: Work, offload: Offload) -> Candidate:
        key = (work.batch, work.micro_batch, work.recompute, offload)
        candidate = place.candidates.get(key)
        if candidate is None:
            c = place.working(*key)
            seconds = self._seconds(work.batch, self._predictions.step_seconds(c))
            candidate = place.candidates[key] = Candidate(seconds, place.layout, c)
        return candidate

    def undivided(self, layouts: Iterable[Layout]) -> str | None:
        """Return why no batch can be split over the replicas of any layout; ``None``: one can."""
        sizes, replicas = self.task.batch.sizes, {self.replicas(layout) for layout in layouts}
        if any(size % count == 0 for size in sizes for count in replicas):
            return None
        fewest = min(replicas)
        batch = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        return f"a batch of {batch} can't be split evenly over {fewest} replicas"

    def replicas(self, layout: Layout) -> int:
        """Return the number of copies of the model, each with samples of its own."""
        per_instance = layout.devices_per_instance or self.instance.devices
        return per_instance * self.count // layout.replica

    def configuration(
        self, layout: Layout, batch: int, micro: int, recompute: Recompute, offload: Offload
    ) -> Configuration:
        """Return the configuration of a layout on this cluster."""
        return self.place(layout).working(batch, micro, recompute, offload)

    def _kins(self, group: Group) -> list[Place]:
        """Return one of all layouts that differ in the sharding of states alone."""
        if not group.kins:
            group.kins += {place.kin: place for place in self._places(group)}.values()
        return group.kins

    def _places(self, group: Group) -> list[Place]:
        if not group.places:
            group.places += map(self.place, group.layouts)
        return group.places

    def place(self, layout: Layout) -> Place:
        """Return a layout on this cluster."""
        place = self._known.places.get(layout)
        if place is None:
            is_sharded = layout.family == "sharded"
            offloads = self._offloads[is_sharded, is_sharded and layout.zero == 3]
            c = self._laid_out(layout)
            place = Place(layout, c, offloads, self._room, self._predictions)
            self._known.places[layout] = place
        return place

    def _laid_out(self, layout: Layout) -> Configuration:
        """Return a layout with the least work."""
        key = (layout.kin, layout.degrees)
        same = self._known.laid_out.get(key)
        if same is None:
            same = self._known.laid_out[key] = configuration(
                self.task, layout, machine_of(self.instance, self.count, layout),
                batch=1, micro=1, recompute="none", offload="none",
            )  # fmt: skip
        return same.sharded(layout.shard)


class Fastest:
    """The fastest configuration of those that were tried."""

    def __init__(self, longest_s: float) -> None:
        """Look for one whose computing takes no longer."""
        self.candidate: Candidate | None = None
        self.least_s = longest_s
        """The lowest bound of what fits."""
        self.most_s = longest_s
        """The bound above which nothing can be better."""

    def take(self, candidate: Candidate, bound: float) -> None:
        """Note a configuration that fits, those with lower bounds first."""
        if self.candidate is None:
            self.least_s = bound
        elif candidate.order >= self.candidate.order:
            return
        self.candidate, self.most_s = candidate, candidate.seconds


Replicas = dict[tuple[LayoutFamily, int], ReplicaTime]
"""Parts of a step's time by the layouts that have them in common."""

_OFFLOADS: Final = ("none", "optimizer", "all")


def offloads(space: Space, *, is_sharded: bool, shards_weights: bool) -> Iterator[Offload]:
    """Return what a layout can offload to the host: state that DeepSpeed or FSDP shards."""
    for kind in sorted(space.offload, key=_OFFLOADS.index):
        if kind == "none" or (is_sharded and (kind == "optimizer" or shards_weights)):
            yield kind
