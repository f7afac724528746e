"""The fastest configuration of a task on one cluster.

Configurations are tried in the order of a lower bound on their time: computing alone, without any
communication, start or checkpoint. The first whose bound is above the best time ends the search, so
the answer is the same as from trying all. What can't fit any of several layouts that compute alike
is left out for all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import Final

from orchestration.catalog import Instance
from orchestration.planning.cost.devices import device
from orchestration.planning.cost.estimates import margin
from orchestration.planning.cost.prediction import USABLE
from orchestration.planning.model.configuration import Configuration, Offload, Recompute
from orchestration.planning.search.answers.besides import besides
from orchestration.planning.search.configurations import attention, configuration, machine_of
from orchestration.planning.search.layouts import Kin, Layout
from orchestration.planning.search.places.alike import Places
from orchestration.planning.search.places.memory import (
    LaidOut,
    Miss,
    Needs,
    Room,
    micro_batches,
)
from orchestration.planning.search.places.place import Candidate, Fastest, order
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Task
from orchestration.planning.search.work import Shared, Stream, Work


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
        self._accelerator = instance.accelerator or ""
        kernel = attention(task, self._accelerator)
        is_neuron = device(self._accelerator).generation == "neuron"
        self._kernels = (kernel, is_neuron, space.offload)
        # A fused attention kernel stores no scores to recompute.
        fused = kernel != "unfused"
        self.recomputes: tuple[Recompute, ...] = tuple(
            kind for kind in space.recompute if not (fused and kind == "attention")
        )
        """Kinds of recomputation that this cluster can use."""
        self._offloads = {
            kind: tuple(offloads(space, is_sharded=kind[0], shards_weights=kind[1]))
            for kind in ((False, False), (True, False), (True, True))
        }
        self._room = Room(
            USABLE * (instance.device_memory_gib or 0.0), instance.host_memory_gib,
            self.recomputes, task.batch.most,
        )  # fmt: skip
        self._shared = shared or Shared(task)
        self._predictions = self._shared.predictions
        self._has_formula = task.model.kind != "custom"
        self._places: dict[Kin, Places] = {}
        self.bounds = self._shared.bounds_of(
            (self._accelerator, instance.interconnect_gb_per_s, self.recomputes)
        )

    def streams(self, every: Iterable[Kin]) -> list[Stream]:
        """Return the ways to compute each batch, those with the lowest bound first."""
        sizes = self.task.batch.sizes
        streams: list[Stream] = []
        for kin in every:
            replicas, degrees = self.replicas(kin.first), kin.first.degrees
            for batch in sizes:
                samples, rest = divmod(batch, replicas)
                if not rest:
                    bound = self.bounds.least_s(self._span(batch)[0], samples, degrees)
                    streams.append(Stream(bound, len(streams), batch, samples, kin))
        return sorted(streams)

    def hopeful(self, streams: Iterable[Stream]) -> list[Stream]:
        """Return the ways whose layouts may hold a sample, as far as formulas tell."""
        known: dict[Kin, bool] = {}
        found = []
        for stream in streams:
            if stream.kin not in known:
                known[stream.kin] = self._least_gib(stream.kin, 1) <= self._room.device_gib
            if known[stream.kin]:
                found.append(stream)
        return found

    def _least_gib(self, kin: Kin, count: int) -> float:
        """Return what so many samples one by one need at least in one of several layouts."""
        if not self._offloads_of(kin):
            return inf
        if not self._predictions.by_formula:
            return 0.0
        expected = self._needs(kin).least(1, count, self._room.least)
        return expected * margin(self._accelerator, self.task.model) * _LEAST

    def holds(self, streams: Iterable[Stream]) -> bool:
        """Return whether any batch fits, however long it takes: one by one, or all at once."""
        least = self._room.least
        return any(
            self.places(stream.kin).fits(micro, stream.samples // micro, least)
            for stream in streams
            for micro in (1, micro_batches(stream.samples)[-1])
        )

    def fits_s(self, streams: Iterable[Stream]) -> float:
        """Return the lowest bound of what fits; infinite: nothing does."""
        least = inf
        for stream in streams:
            if stream.bound >= least:
                break
            least = min(least, self._first_s(stream, least))
        return least

    def _first_s(self, stream: Stream, most_s: float) -> float:
        """Return the lowest bound of what fits, or one that is no lower than another."""
        places = self.places(stream.kin)
        for micro, count, bounds in self._ways(stream, places):
            if min(bounds) >= most_s:
                break
            for bound, kind in zip(bounds, self.recomputes, strict=True):
                if (
                    bound < most_s
                    and places.may_fit(micro, count, kind)
                    and places.fits(micro, count, kind)
                ):
                    most_s = bound
        return most_s

    def best(self, streams: Iterable[Stream], longest_s: float = inf) -> Candidate | None:
        """Return the fastest configuration that fits, if it takes no longer than that."""
        best = Fastest(longest_s)
        for stream in streams:
            if stream.bound > best.seconds:
                break
            self._try(stream, best)
        return best.candidate

    def _try(self, stream: Stream, best: Fastest) -> None:
        """Try the ways to compute a batch that may be faster than the best."""
        places = self.places(stream.kin)
        for micro, count, bounds in self._ways(stream, places):
            if min(bounds) > best.seconds:
                break
            for bound, kind in zip(bounds, self.recomputes, strict=True):
                if bound <= best.seconds and places.may_fit(micro, count, kind):
                    work = Work(stream.batch, micro, count, kind)
                    if self._may_be_faster(places, work, best):
                        self._try_work(places, work, best, bound)

    def _ways(self, stream: Stream, places: Places) -> Iterator[tuple[int, int, tuple[float, ...]]]:
        """Return micro-batches that may fit, how many a step has, and bounds by recomputation.

        The largest come first, which take least time.
        """
        steps, _ = self._span(stream.batch)
        degrees = stream.kin.first.degrees
        for micro in places.sizes(stream.samples):
            count = stream.samples // micro
            times = self.bounds.micro_s(micro, degrees)
            yield micro, count, tuple(steps * count * seconds for seconds in times)

    def _may_be_faster(self, places: Places, work: Work, best: Fastest) -> bool:
        """Return whether work may take less time than the best in any of several layouts."""
        if not self._has_formula:
            return True
        batch, micro, count, recompute = work
        return (
            self._seconds(batch, count * places.least_s(micro, recompute)) < best.seconds
            and self._seconds(batch, count * places.least_sharded_s(micro, recompute))
            < best.seconds
        )

    def _try_work(self, places: Places, work: Work, best: Fastest, bound: float) -> None:
        """Try layouts that compute alike."""
        batch, micro, count, recompute = work
        replica = places.replica_time(micro, count, recompute) if self._has_formula else None
        for place in places.each:
            if replica is not None and best.candidate is not None:
                least = self._seconds(batch, place.least_step_s(replica) * places.least_factor)
                if order(least, place.layout, batch, micro) > best.candidate.order:
                    continue
            offload = places.offload(place, micro, count, recompute)
            if offload is not None:
                c = place.working(batch, micro, recompute, offload)
                seconds = self._seconds(batch, self._predictions.step_seconds(c))
                best.take(Candidate(seconds, place.layout, c), bound)

    def _seconds(self, batch: int, step_s: float) -> float:
        """Return the seconds of the whole training."""
        steps, besides_s = self._span(batch)
        return steps * step_s + besides_s

    def _span(self, batch: int) -> tuple[int, float]:
        """Return the steps of the whole training, and the seconds beside them."""
        known = self._shared.spans.get(batch)
        if known is None:
            span = (self.task.steps(batch), besides(self.task, batch).seconds)
            known = self._shared.spans[batch] = span
        return known

    def nearest(self, every: Iterable[Kin]) -> Miss | None:
        """Return what is nearest to fitting, if nothing fits; ``None``: no batch can be split."""
        nearest: Miss | None = None
        for kin in every:
            replicas = self.replicas(kin.first)
            batch = next((size for size in self.task.batch.sizes if size % replicas == 0), None)
            if batch is None:
                continue
            count = batch // replicas
            if nearest is None or self._least_gib(kin, count) < nearest.need_gib:
                misses = self._misses(kin, count)
                others = () if nearest is None else (nearest,)
                nearest = min((*others, *misses), key=lambda miss: miss.need_gib, default=None)
        return nearest

    def _misses(self, kin: Kin, count: int) -> Iterator[Miss]:
        """Return what layouts need for so many samples one by one: the least that there is."""
        least, places = self._room.least, self.places(kin)
        for place in places.each:
            for offload in place.offloads:
                if places.host_holds(place, offload):
                    need = places.need(place, 1, count, least, offload)
                    yield Miss(need, place.layout, least, offload)

    def undivided(self, every: Iterable[Kin]) -> str | None:
        """Return why no batch can be split over the replicas of any layout; ``None``: one can."""
        sizes, replicas = self.task.batch.sizes, {self.replicas(kin.first) for kin in every}
        if any(size % count == 0 for size in sizes for count in replicas):
            return None
        fewest = min(replicas)
        batch = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        return f"a batch of {batch} can't be split evenly over {fewest} replicas"

    def replicas(self, layout: Layout) -> int:
        """Return the number of copies of the model, each with samples of its own."""
        per_instance = layout.devices_per_instance or self.instance.devices
        return per_instance * self.count // layout.replica

    def places(self, kin: Kin) -> Places:
        """Return layouts on this cluster that compute alike."""
        places = self._places.get(kin)
        if places is None:
            places = self._places[kin] = self._placed(kin)
        return places

    def _placed(self, kin: Kin) -> Places:
        needs = self._needs(kin)
        known = self._shared.known_of((self.instance.name, self.count), kin, needs)
        return Places(kin, self._laid_out(kin), self._room, known)

    def _needs(self, kin: Kin) -> Needs:
        return self._shared.needs_of(self._kernels, kin, self._laid_out)

    def _laid_out(self, kin: Kin) -> LaidOut:
        c = self.configuration(kin.first)
        every = tuple(c.sharded(layout.shard) for layout in kin.layouts)
        return LaidOut(every, self._offloads_of(kin))

    def _offloads_of(self, kin: Kin) -> tuple[Offload, ...]:
        is_sharded = kin.first.family == "sharded"
        kinds = self._offloads[is_sharded, is_sharded and kin.first.zero == 3]
        # One rank has nothing to share, and such an engine only to offload.
        alone = is_sharded and kin.first.shard == 1
        return tuple(kind for kind in kinds if not (alone and kind == "none"))

    def configuration(
        self,
        layout: Layout,
        batch: int = 1,
        micro: int = 1,
        recompute: Recompute = "none",
        offload: Offload = "none",
    ) -> Configuration:
        """Return the configuration of a layout on this cluster, with the least work by default."""
        return configuration(
            self.task, layout, machine_of(self.instance, self.count, layout),
            batch=batch, micro=micro, recompute=recompute, offload=offload,
        )  # fmt: skip


_LEAST: Final = 0.99
"""Least share of the need with what is recomputed for least memory: of few tokens, single operators
recomputed may need up to 0.6 % less than whole layers."""

_OFFLOADS: Final = ("none", "optimizer", "all")


def offloads(space: Space, *, is_sharded: bool, shards_weights: bool) -> Iterator[Offload]:
    """Return what a layout can offload to the host: state that DeepSpeed or FSDP shards."""
    for kind in sorted(space.offload, key=_OFFLOADS.index):
        if kind == "none" or (is_sharded and (kind == "optimizer" or shards_weights)):
            yield kind
