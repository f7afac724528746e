"""The fastest configuration of a task on one cluster.

Configurations are tried in the order of a lower bound on their time: computing alone, without any
communication, start or checkpoint. The first whose bound is above the best time ends the search, so
the answer is the same as from trying all. Memory grows with the micro-batch, so bisection finds the
largest that fits; only a single micro-batch per step, whose gradients nothing accumulates, may need
less than several smaller ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from operator import attrgetter
from typing import Final

from orchestration.catalog import Instance
from orchestration.planning.cost.estimates import (
    HOST_SHARE,
    host_need,
)
from orchestration.planning.cost.prediction import USABLE
from orchestration.planning.model.configuration import (
    Configuration,
    Machine,
    Offload,
    Recompute,
)
from orchestration.planning.search.answers.besides import besides
from orchestration.planning.search.configurations import attention, configuration, machine_of
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.measured.corrections import corrections
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Task
from orchestration.planning.search.work import (
    Candidate,
    Degrees,
    Known,
    Limit,
    Miss,
    Shared,
    Way,
    Work,
)


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
        self._corrections = corrections(task)
        # A fused attention kernel stores no scores to recompute.
        fused = attention(task, self._accelerator) != "unfused"
        self.recomputes: tuple[Recompute, ...] = tuple(
            kind for kind in space.recompute if not (fused and kind == "attention")
        )
        """Kinds of recomputation that this cluster can use."""
        self._kinds = {
            kind: tuple(offloads(space, is_sharded=kind[0], shards_weights=kind[1]))
            for kind in ((False, False), (True, False), (True, True))
        }
        self._shared = shared = shared or Shared()
        self._bounds, self._needs, self._ways = shared.bounds, shared.needs, shared.ways
        self._known = shared.clusters.setdefault((instance.name, count), Known())

    def works(self, layouts: Iterable[Layout]) -> list[Work]:
        """Return all work for some layouts, that with the lowest bound first."""
        works = []
        for batch, replicas, degrees, group in self._batches(layouts):
            limits = {kind: _unknown(group) for kind in self.recomputes}
            works += [
                Work(bound, batch, micro, recompute, group, limits[recompute])
                for bound, micro, recompute in self._ways_of(batch, batch // replicas, degrees)
            ]
        works.sort(key=attrgetter("bound"))
        return works

    def least_s(self, layouts: Iterable[Layout]) -> float:
        """Return the lowest bound of all work for some layouts."""
        return min(
            self._ways_of(batch, batch // replicas, degrees)[0][0]
            for batch, replicas, degrees, _ in self._batches(layouts)
        )

    def _batches(
        self, layouts: Iterable[Layout]
    ) -> Iterator[tuple[int, int, Degrees, tuple[Layout, ...]]]:
        """Group layouts by what their computing depends on, for each batch that they divide."""
        groups: dict[tuple[int, Degrees], list[Layout]] = {}
        for layout in layouts:
            degrees = (layout.tensor, layout.pipeline, layout.context, layout.expert)
            groups.setdefault((self.replicas(layout), degrees), []).append(layout)
        for (replicas, degrees), group in groups.items():
            for batch in self.task.batch.sizes:
                if batch % replicas == 0:
                    yield batch, replicas, degrees, tuple(group)

    def _ways_of(self, batch: int, samples: int, degrees: Degrees) -> list[Way]:
        key = (self._accelerator, self.instance.interconnect_gb_per_s, batch, samples, degrees)
        ways = self._ways.get(key)
        if ways is None:
            steps, bounds = self.task.steps(batch), self._bounds.setdefault(key[:2] + key[4:], {})
            ways = self._ways[key] = []
            for micro in micro_batches(samples):
                if micro not in bounds:
                    bounds[micro] = self._computing(micro, degrees)
                repeated = steps * (samples // micro)
                ways += [
                    (repeated * seconds, micro, kind)
                    for kind, seconds in zip(self.recomputes, bounds[micro], strict=True)
                ]
            ways.sort()
        return ways

    def best(
        self, works: Iterable[Work], longest_s: float = float("inf")
    ) -> tuple[float, Candidate] | None:
        """Return the fastest configuration that fits, after the lowest bound of any that does.

        None, if no computing that fits can be done in time.
        """
        best: Candidate | None = None
        least_s = longest_s
        # What fits with less recomputed takes no longer than with more, whose bound is higher,
        # unless it has to offload for it, or measurements say so.
        by_formula = not self._corrections.known
        fitted: set[tuple[Layout, int, int]] = set()
        for work in works:
            if work.bound > (longest_s if best is None else best.seconds):
                break
            for index, layout in enumerate(work.layouts):
                limit = work.limits[index]
                if limit is not None and work.micro_batch > limit:
                    continue
                same = (layout, work.batch, work.micro_batch)
                candidate = None if same in fitted else self._fitting(index, work)
                if candidate is None:
                    continue
                if by_formula and candidate.configuration.offload == "none":
                    fitted.add(same)
                if best is None or candidate.order < best.order:
                    least_s = work.bound if best is None else least_s
                    best = candidate
        return None if best is None else (least_s, best)

    def holds(self, layouts: Iterable[Layout]) -> bool:
        """Return whether any batch fits in any of some layouts, however long it takes."""
        least: Recompute = "full" if "full" in self.recomputes else self.recomputes[-1]
        return any(
            self._limit(layout, Work(0.0, batch, 1, least, group, _unknown(group)), offload).largest
            for batch, _, _, group in self._batches(layouts)
            for layout in group
            for offload in self._offloads(layout)
        )

    def _fitting(self, index: int, work: Work) -> Candidate | None:
        """Return the configuration that offloads no more than it has to, which only costs time."""
        layout, largest = work.layouts[index], 0
        for offload in self._offloads(layout):
            limit = self._limit(layout, work, offload)
            if limit.holds(work.micro_batch):
                return self._candidate(layout, work, offload)
            largest = max(largest, limit.largest)
        work.limits[index] = largest
        return None

    def _offloads(self, layout: Layout) -> tuple[Offload, ...]:
        is_sharded = layout.family == "sharded"
        return self._kinds[is_sharded, is_sharded and layout.zero == 3]

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
        return self.machine(layout).devices // layout.replica

    @cache  # noqa: B019 - a cluster lives as long as one search
    def machine(self, layout: Layout) -> Machine:
        """Return the devices that a layout uses."""
        return machine_of(self.instance, self.count, layout)

    def configuration(
        self, layout: Layout, batch: int, micro: int, recompute: Recompute, offload: Offload
    ) -> Configuration:
        """Return the configuration of a layout on this cluster."""
        return self._laid_out(layout).working(
            global_batch=batch, micro_batch=micro, recompute=recompute, offload=offload
        )

    @cache  # noqa: B019 - a cluster lives as long as one search
    def _laid_out(self, layout: Layout) -> Configuration:
        """Return a layout with the least work."""
        return configuration(
            self.task, layout, self.machine(layout),
            batch=1, micro=1, recompute="none", offload="none",
        )  # fmt: skip

    def _limit(self, layout: Layout, work: Work, offload: Offload) -> Limit:
        """Return the largest micro-batch that fits."""
        key = (layout, work.batch, work.recompute, offload)
        limit = self._known.limits.get(key)
        if limit is None:
            limit = self._known.limits[key] = self._largest(layout, work, offload)
        miss = limit.miss
        if miss and (self.nearest is None or miss.need_gib < self.nearest.need_gib):
            self.nearest = miss
        return limit

    def _largest(self, layout: Layout, work: Work, offload: Offload) -> Limit:
        memory = USABLE * (self.instance.device_memory_gib or 0.0)
        if not self._host_holds(layout, work, offload):
            return Limit(0, None)

        needs, (place, replicas) = self._needs, self._place(layout)
        samples = work.batch // replicas
        # Beyond what a pipeline has in flight, more micro-batches need no more memory.
        flying = max(2, 2 * layout.pipeline)

        def need(micro: int, recompute: Recompute = work.recompute) -> float:
            key = (place, micro, min(samples // micro, flying), recompute, offload)
            known = needs.get(key)
            if known is None:
                self._shared.considered += 1
                c = self.configuration(layout, work.batch, micro, recompute, offload)
                known = needs[key] = self._corrections.memory_need(c)
            return known

        least: Recompute = "full" if "full" in self.recomputes else work.recompute
        sizes = micro_batches(samples)
        single = sizes[-1] if need(sizes[-1]) <= memory else 0
        smallest = need(1, least)
        if smallest > memory and not single:
            return Limit(0, Miss(smallest, layout, work.batch, least, offload))
        fits = bisect_right(sizes[:-1], memory, key=need)
        return Limit(sizes[fits - 1] if fits else 0, None, single)

    @cache  # noqa: B019 - a cluster lives as long as one search
    def _place(self, layout: Layout) -> tuple[int, int]:
        """Return a number for what the memory of a layout depends on, and its replicas."""
        machine = self.machine(layout)
        places = self._shared.places
        place = (self._accelerator, machine.devices, machine.devices_per_node, layout)
        return places.setdefault(place, len(places)), self.replicas(layout)

    def _host_holds(self, layout: Layout, work: Work, offload: Offload) -> bool:
        """Return whether offloaded states fit the host; unknown memory counts as enough."""
        host = self.instance.host_memory_gib
        if offload == "none" or host is None:
            return True
        hosts = self._known.hosts
        if (layout, offload) not in hosts:
            c = self.configuration(layout, work.batch, work.micro_batch, work.recompute, offload)
            hosts[layout, offload] = host_need(c) <= HOST_SHARE * host
        return hosts[layout, offload]

    def _candidate(self, layout: Layout, work: Work, offload: Offload) -> Candidate:
        key = (layout, work.batch, work.micro_batch, work.recompute, offload)
        candidate = self._known.candidates.get(key)
        if candidate is None:
            self._shared.considered += 1
            c = self.configuration(layout, work.batch, work.micro_batch, work.recompute, offload)
            seconds = self.task.steps(work.batch) * self._corrections.step_seconds(c)
            seconds += besides(self.task, work.batch).seconds
            candidate = self._known.candidates[key] = Candidate(seconds, layout, c)
        return candidate

    def _computing(self, micro: int, degrees: Degrees) -> tuple[float, ...]:
        """Return lower bounds on the seconds of a micro-batch, by the kind of recomputation."""
        tensor, pipeline, context, expert = degrees
        layout = Layout(
            family="replicated", rank=0,
            tensor=tensor, pipeline=pipeline, context=context, expert=expert,
        )  # fmt: skip
        devices = layout.replica * expert  # experts are spread over replicas
        machine = Machine(
            accelerator=self._accelerator, devices=devices, devices_per_node=devices,
            device_memory_gib=0.0, interconnect_gb_per_s=self.instance.interconnect_gb_per_s,
        )  # fmt: skip
        c = configuration(
            self.task, layout, machine,
            batch=micro * expert, micro=micro, recompute="none", offload="none",
        )  # fmt: skip
        return self._corrections.least_seconds(c, self.recomputes)


_OFFLOADS: Final = ("none", "optimizer", "all")


def offloads(space: Space, *, is_sharded: bool, shards_weights: bool) -> Iterator[Offload]:
    """Return what a layout can offload to the host: state that DeepSpeed or FSDP shards."""
    for kind in sorted(space.offload, key=_OFFLOADS.index):
        if kind == "none" or (is_sharded and (kind == "optimizer" or shards_weights)):
            yield kind


def _unknown(layouts: Sequence[Layout]) -> list[int | None]:
    return [None] * len(layouts)


@cache
def micro_batches(samples: int) -> tuple[int, ...]:
    """Return the micro-batches that divide a replica's samples: 2^n and 3 x 2^n, ascending.

    >>> micro_batches(12)
    (1, 2, 3, 4, 6, 12)
    """
    powers = (1 << n for n in range(samples.bit_length()))
    sizes = (size for power in powers for size in (power, power // 2 * 3))
    return tuple(size for size in sizes if size and samples % size == 0)
