"""One layout on one cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from orchestration.planning.cost.estimates import Ranks, ranks_seconds
from orchestration.planning.cost.step_time import ReplicaTime
from orchestration.planning.model.configuration import Configuration, Offload, Recompute
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.places.predictions import Predictions


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration that fits, with the seconds of the whole training."""

    seconds: float
    layout: Layout
    configuration: Configuration

    @property
    def order(self) -> Order:
        """Sort key, for the lowest to be the best."""
        c = self.configuration
        return order(self.seconds, self.layout, c.global_batch, c.micro_batch)


Order = tuple[float, int, int, int]


def order(seconds: float, layout: Layout, batch: int, micro: int) -> Order:
    """Return a sort key: faster, then simpler, then a smaller batch, then larger micro-batches."""
    return (seconds, layout.rank, batch, -micro)


class Fastest:
    """The fastest configuration of those that were tried."""

    def __init__(self, longest_s: float) -> None:
        """Begin without any; none may take longer than that."""
        self.candidate: Candidate | None = None
        self.seconds = longest_s
        """Its time, which a bound on a better one is not above."""
        self._order: tuple[Order, float] | None = None

    def take(self, candidate: Candidate, bound: float) -> None:
        """Note a configuration that fits; of equal ones, that with the lower bound."""
        key = (candidate.order, bound)
        if candidate.seconds <= self.seconds and (self._order is None or key < self._order):
            self.candidate, self.seconds, self._order = candidate, candidate.seconds, key


class Place:
    """One layout on one cluster, whatever its work."""

    def __init__(
        self,
        index: int,
        layout: Layout,
        c: Configuration,
        offloads: tuple[Offload, ...],
        predictions: Predictions,
    ) -> None:
        """Take the layout's configuration, with any work, and what it may offload."""
        self.index = index
        """Its number among the layouts that compute alike."""
        self.layout = layout
        self.configuration = c
        self.offloads = offloads
        self._predictions = predictions
        self._needs: dict[tuple[int, int, Recompute, Offload], float] = {}

    @cached_property
    def ranks(self) -> Ranks:
        """Seconds that its ranks take for states."""
        return ranks_seconds(self.configuration, self.offloads)

    def least_step_s(self, replica: ReplicaTime) -> float:
        """Return the least seconds of a step, by that part of it which its kin have in common.

        Measurements may change it.
        """
        return self.ranks.least_step(replica)

    def working(
        self, batch: int, micro: int, recompute: Recompute, offload: Offload
    ) -> Configuration:
        """Return the configuration for some work."""
        return self.configuration.working(
            global_batch=batch, micro_batch=micro, recompute=recompute, offload=offload
        )

    def measured_need(
        self, micro: int, count: int, recompute: Recompute, offload: Offload
    ) -> float:
        """Return the GiB of so many micro-batches in a step, as measurements correct it."""
        key = (micro, count, recompute, offload)
        need = self._needs.get(key)
        if need is None:
            c = self.working(micro * count * self.configuration.data, micro, recompute, offload)
            need = self._needs[key] = self._predictions.memory_need(c)
        return need
