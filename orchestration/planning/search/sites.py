"""Clusters in a search, with lower bounds on the time and the cost of their plans."""

from __future__ import annotations

from functools import cached_property
from math import inf

from orchestration.catalog import Instance
from orchestration.planning.search.candidates import Cluster
from orchestration.planning.search.layouts import Kin
from orchestration.planning.search.places.place import Candidate
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Task
from orchestration.planning.search.work import Shared, Stream


class Site:
    """One cluster with the layouts that a search may use, and what was found out about it."""

    def __init__(
        self, cluster: Cluster, kins: tuple[Kin, ...], usd_per_s: float | None, doubts: int
    ) -> None:
        """Take the price of the whole cluster, and how many things about its plans are unknown."""
        self.cluster = cluster
        self.kins = kins
        self.usd_per_s = usd_per_s
        self.doubts = doubts

    @property
    def name(self) -> str:
        """The instance type."""
        return self.cluster.instance.name

    @cached_property
    def _streams(self) -> list[Stream]:
        return self.cluster.streams(self.kins)

    @cached_property
    def _hopeful(self) -> list[Stream]:
        return self.cluster.hopeful(self._streams)

    @cached_property
    def time_s(self) -> float:
        """Lower bound on the time of a plan."""
        return self._streams[0].bound

    @cached_property
    def holds(self) -> bool:
        """True if any batch fits in any layout, however long it takes."""
        return self.cluster.holds(self._hopeful)

    @cached_property
    def fits_s(self) -> float:
        """Lower bound on the time of a plan that fits; infinite: none does."""
        return self.cluster.fits_s(self._hopeful)

    @cached_property
    def best(self) -> Candidate | None:
        """The fastest configuration that fits."""
        return self.cluster.best(self._hopeful)

    @cached_property
    def cost_usd(self) -> float:
        """Lower bound on the cost of a plan."""
        return inf if self.usd_per_s is None else self.time_s * self.usd_per_s

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


class Pool(Shared):
    """Predictions that the searches for a task share, and their sites."""

    def __init__(self, task: Task) -> None:
        """Begin without any."""
        super().__init__(task)
        self.sites: dict[tuple[str, int], list[Site]] = {}
        """Sites by instance type and count: one for each set of layouts so far."""
        self._clusters: dict[tuple[str, int], Cluster] = {}

    def cluster(self, space: Space, instance: Instance, count: int) -> Cluster:
        """Return a cluster, the same for all searches."""
        key = (instance.name, count)
        if key not in self._clusters:
            self._clusters[key] = Cluster(self.task, space, instance, count, self)
        return self._clusters[key]
