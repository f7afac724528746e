"""The fastest configuration of a task on one cluster.

Configurations are tried in the order of a lower bound on their time: computing alone, without any
communication. The first whose bound is above the best time ends the search, so the answer is the
same as from trying all. Memory grows with the micro-batch, so bisection finds the largest that
fits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import NamedTuple

from orchestration.catalog import Instance
from orchestration.planning.cost.estimates import (
    HOST_SHARE,
    computing_seconds,
    host_need,
    memory_need,
    step_seconds,
)
from orchestration.planning.cost.prediction import USABLE
from orchestration.planning.model.configuration import (
    Configuration,
    Machine,
    Offload,
    Recompute,
)
from orchestration.planning.search.configurations import attention, configuration
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Task

Degrees = tuple[int, int, int, int]
"""Degrees of tensor, pipeline, context and expert parallelism."""
Bounds = dict[tuple[str, int, Recompute, Degrees], float]
"""Computing seconds of one micro-batch, by everything that they depend on."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration that fits, with the seconds of the whole training."""

    seconds: float
    layout: Layout
    configuration: Configuration

    @property
    def order(self) -> tuple[float, int, int, int]:
        """Sort key: faster, then simpler, then a smaller batch, then larger micro-batches."""
        c = self.configuration
        return (self.seconds, self.layout.rank, c.global_batch, -c.micro_batch)


@dataclass(frozen=True, slots=True)
class Miss:
    """The configuration that is nearest to fitting."""

    need_gib: float
    layout: Layout
    configuration: Configuration


class Work(NamedTuple):
    """Computing that several layouts share, however they shard states."""

    bound: float
    """Seconds of the whole training without communication and optimizer."""
    batch: int
    micro_batch: int
    recompute: Recompute
    layouts: tuple[Layout, ...]
    """Layouts with the same degrees and number of replicas."""


class Cluster:
    """A number of instances of one type, as a place for a configuration."""

    def __init__(
        self, task: Task, space: Space, instance: Instance, count: int, bounds: Bounds | None = None
    ) -> None:
        """Share `bounds` with the other clusters of a search."""
        self.task = task
        self.space = space
        self.instance = instance
        self.count = count
        self.nearest: Miss | None = None
        """Nearest of the layouts that do not fit, among those that were tried."""
        self.considered = 0
        """Number of configurations whose memory was predicted."""
        self._accelerator = instance.accelerator or ""
        # A fused attention kernel stores no scores to recompute.
        fused = attention(task, self._accelerator) != "unfused"
        self.recomputes: tuple[Recompute, ...] = tuple(
            kind for kind in space.recompute if not (fused and kind == "attention")
        )
        """Kinds of recomputation that this cluster can use."""
        self._bounds = {} if bounds is None else bounds
        self._limits: dict[tuple[Layout, int, Recompute, Offload], int] = {}

    def works(self, layouts: Iterable[Layout]) -> list[Work]:
        """Return all work for some layouts, that with the lowest bound first."""
        groups: dict[tuple[int, Degrees], list[Layout]] = {}
        for layout in layouts:
            degrees = (layout.tensor, layout.pipeline, layout.context, layout.expert)
            groups.setdefault((self.replicas(layout), degrees), []).append(layout)
        works: list[Work] = []
        for (replicas, degrees), group in groups.items():
            for batch in self.task.batch.sizes:
                if batch % replicas == 0:
                    works += self._of_batch(batch, batch // replicas, degrees, tuple(group))
        works.sort(key=attrgetter("bound"))
        return works

    def _of_batch(
        self, batch: int, samples: int, degrees: Degrees, layouts: tuple[Layout, ...]
    ) -> Iterator[Work]:
        steps = self.task.steps(batch)
        for micro in micro_batches(samples):
            for recompute in self.recomputes:
                bound = steps * (samples // micro) * self._computing(micro, recompute, degrees)
                yield Work(bound, batch, micro, recompute, layouts)

    def best(self, works: Iterable[Work]) -> Candidate | None:
        """Return the fastest configuration that fits."""
        best: Candidate | None = None
        for work in works:
            if best is not None and work.bound > best.seconds:
                break
            for layout in work.layouts:
                for offload in offloads(self.space, layout):
                    if work.micro_batch <= self._limit(layout, work, offload):
                        candidate = self._candidate(layout, work, offload)
                        if best is None or candidate.order < best.order:
                            best = candidate
        return best

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
        instance = self.instance
        per_instance = layout.devices_per_instance or instance.devices
        return Machine(
            accelerator=self._accelerator,
            devices=per_instance * self.count,
            devices_per_node=per_instance,
            device_memory_gib=instance.device_memory_gib or 0.0,
            network_gbps=instance.network_gbps if self.count > 1 else None,
            interconnect_gb_per_s=instance.interconnect_gb_per_s,
            vcpus=instance.vcpus,
        )

    def configuration(
        self, layout: Layout, batch: int, micro: int, recompute: Recompute, offload: Offload
    ) -> Configuration:
        """Return the configuration of a layout on this cluster."""
        return configuration(
            self.task, layout, self.machine(layout),
            batch=batch, micro=micro, recompute=recompute, offload=offload,
        )  # fmt: skip

    def _limit(self, layout: Layout, work: Work, offload: Offload) -> int:
        """Return the largest micro-batch that fits; 0: none does."""
        key = (layout, work.batch, work.recompute, offload)
        limit = self._limits.get(key)
        if limit is None:
            limit = self._limits[key] = self._largest(layout, work, offload)
        return limit

    def _largest(self, layout: Layout, work: Work, offload: Offload) -> int:
        memory = USABLE * (self.instance.device_memory_gib or 0.0)
        if not self._host_holds(layout, work, offload):
            return 0

        def need(micro: int) -> float:
            self.considered += 1
            return memory_need(
                self.configuration(layout, work.batch, micro, work.recompute, offload)
            )

        smallest = need(1)
        if smallest > memory:
            if self.nearest is None or smallest < self.nearest.need_gib:
                c = self.configuration(layout, work.batch, 1, work.recompute, offload)
                self.nearest = Miss(smallest, layout, c)
            return 0
        sizes = list(micro_batches(work.batch // self.replicas(layout)))
        return sizes[bisect_right(sizes, memory, lo=1, key=need) - 1]

    def _host_holds(self, layout: Layout, work: Work, offload: Offload) -> bool:
        """Return whether offloaded states fit the host; unknown memory counts as enough."""
        host = self.instance.host_memory_gib
        if offload == "none" or host is None:
            return True
        c = self.configuration(layout, work.batch, work.micro_batch, work.recompute, offload)
        return host_need(c) <= HOST_SHARE * host

    def _candidate(self, layout: Layout, work: Work, offload: Offload) -> Candidate:
        c = self.configuration(layout, work.batch, work.micro_batch, work.recompute, offload)
        return Candidate(self.task.steps(work.batch) * step_seconds(c), layout, c)

    def _computing(self, micro: int, recompute: Recompute, degrees: Degrees) -> float:
        key = (self._accelerator, micro, recompute, degrees)
        if key not in self._bounds:
            tensor, pipeline, context, expert = degrees
            layout = Layout(
                family="replicated", rank=0,
                tensor=tensor, pipeline=pipeline, context=context, expert=expert,
            )  # fmt: skip
            devices = layout.replica * expert  # experts are spread over replicas
            machine = Machine(
                accelerator=self._accelerator, devices=devices, devices_per_node=devices,
                device_memory_gib=0.0,
            )  # fmt: skip
            batch = micro * expert
            c = configuration(
                self.task, layout, machine,
                batch=batch, micro=micro, recompute=recompute, offload="none",
            )  # fmt: skip
            self._bounds[key] = computing_seconds(c)
        return self._bounds[key]


def offloads(space: Space, layout: Layout) -> Iterator[Offload]:
    """Return what a layout can offload to the host: state that DeepSpeed or FSDP shards."""
    for kind in space.offload:
        sharded = layout.family == "sharded"
        if kind == "none" or (sharded and (kind == "optimizer" or layout.zero == 3)):
            yield kind


def micro_batches(samples: int) -> Iterator[int]:
    """Return the micro-batches that divide a replica's samples: 2^n and 3 x 2^n, ascending.

    >>> list(micro_batches(12))
    [1, 2, 3, 4, 6, 12]
    """
    size = 1
    while size <= samples:
        for candidate in (size, size // 2 * 3):
            if candidate and samples % candidate == 0:
                yield candidate
        size *= 2
