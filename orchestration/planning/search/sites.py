"""Clusters in a search, with lower bounds on the time and the cost of their plans."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from orchestration.planning.model.configuration import Offload
from orchestration.planning.search.candidates import Cluster
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.places.place import Candidate
from orchestration.planning.search.task import Task
from orchestration.planning.search.work import Shared


class Site:
    """One cluster with the layouts that a search may use, and what was found out about it."""

    def __init__(
        self, cluster: Cluster, layouts: tuple[Layout, ...], usd_per_s: float | None, doubts: int
    ) -> None:
        """Take the price of the whole cluster, and how many things about its plans are unknown."""
        self.cluster = cluster
        self.layouts = layouts
        self.usd_per_s = usd_per_s
        self.doubts = doubts
        self._tiers = [Tier(cluster, layouts, kinds) for kinds in cluster.tiers]

    @cached_property
    def time_s(self) -> float:
        """Lower bound on the time of a plan."""
        return self.cluster.least_s(self.layouts)

    @property
    def name(self) -> str:
        """The instance type."""
        return self.cluster.instance.name

    def best(self) -> Candidate | None:
        """Return the fastest configuration that fits, however long it takes."""
        return next(self.fitting(), None)

    def fitting(self, longest_s: float = float("inf")) -> Iterator[Candidate]:
        """Return what fits, if its computing can be done in time: the fastest of each tier."""
        for tier in self._tiers:
            if (found := tier.best(longest_s)) is not None:
                yield found

    @cached_property
    def holds(self) -> bool:
        """True if any batch fits in any layout, however long it takes."""
        known = any(tier.found is not None for tier in self._tiers)
        return known or self.cluster.holds(self.layouts)

    @cached_property
    def cost_usd(self) -> float:
        """Lower bound on the cost of a plan."""
        return float("inf") if self.usd_per_s is None else self.time_s * self.usd_per_s

    @property
    def figures(self) -> dict[str, float]:
        """The lower bounds, as a rejection shows them."""
        cost = {} if self.usd_per_s is None else {"least_cost_usd": self.cost_usd}
        return {"least_time_s": self.time_s, **cost}

    @property
    def order(self) -> tuple[float, float, str, int]:
        """Sort key: promising sites first, so that their plans rule out others."""
        return (self.cost_usd * self.time_s, self.time_s, self.name, self.cluster.count)

    def is_beaten_by(self, time_s: float, cost_usd: float, doubts: int) -> bool:
        """Return whether a plan is better than any here, and no less is known of it."""
        return time_s <= self.time_s and cost_usd <= self.cost_usd and doubts <= self.doubts


class Tier:
    """The fastest configuration of one cluster that offloads no more than some states."""

    def __init__(
        self, cluster: Cluster, layouts: tuple[Layout, ...], offloads: tuple[Offload, ...]
    ) -> None:
        """Begin without having searched."""
        self._cluster = cluster
        self._layouts = layouts
        self._offloads = offloads
        self.found: tuple[float, Candidate] | None = None
        """The fastest configuration, after the lowest bound of any that fits."""
        self._barren_s = 0.0
        """Nothing that fits has a lower bound."""

    def best(self, longest_s: float) -> Candidate | None:
        """Return the fastest configuration that fits, if its computing can be done in time."""
        if self.found is None and longest_s > self._barren_s:
            self.found = self._cluster.fastest(self._layouts, longest_s, self._offloads)
            self._barren_s = longest_s
        if self.found is None or self.found[0] > longest_s:
            return None
        return self.found[1]


class Pool(Shared):
    """Predictions that the searches for a task share, and their sites."""

    def __init__(self, task: Task) -> None:
        """Begin without any."""
        super().__init__(task)
        self.sites: dict[tuple[str, int], list[Site]] = {}
        """Sites by instance type and count: one for each set of layouts so far."""
