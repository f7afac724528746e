"""Clusters in a search, with lower bounds on the time and the cost of their plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from math import exp, inf

from orchestration.catalog import Instance
from orchestration.planning.cost.coefficients import fitted
from orchestration.planning.model.configuration import Offload
from orchestration.planning.search.candidates import Cluster
from orchestration.planning.search.layouts import Kin
from orchestration.planning.search.places.place import Candidate
from orchestration.planning.search.preference import is_timed
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Task
from orchestration.planning.search.work import Shared, Stream


class Tier:
    """Ways in which a cluster can compute the batches, with what it may offload."""

    def __init__(self, cluster: Cluster, streams: Iterable[Stream]) -> None:
        """Take what the cluster's layouts can do."""
        self.cluster = cluster
        self._streams = streams
        self._faster: dict[float, Candidate | None] = {}

    @cached_property
    def _hopeful(self) -> list[Stream]:
        return self.cluster.hopeful(self._streams)

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

    def faster(self, longest_s: float) -> Candidate | None:
        """Return the fastest configuration that fits, if it takes no longer than that."""
        if longest_s not in self._faster:
            near = [stream for stream in self._streams if stream.bound <= longest_s]
            found = self.cluster.best(self.cluster.hopeful(near), longest_s) if near else None
            self._faster[longest_s] = found
        return self._faster[longest_s]


class Tiers:
    """Ways in which instances can compute the batches, those with less offloaded first."""

    def __init__(self, clusters: tuple[Cluster, ...], kins: tuple[Kin, ...]) -> None:
        """Take the same instances, as `Pool.clusters` returns them."""
        self.streams = clusters[-1].streams(kins)
        self._tiers = [Tier(cluster, self.streams) for cluster in clusters[:-1] or clusters]

    def fitting(self, longest_s: float = inf) -> Iterator[Candidate]:
        """Return what fits, if its computing can be done in time: the fastest of each tier.

        What offloads more is left out unless it is faster even at the high end of its interval.
        """
        known: Candidate | None = None
        for tier in self._tiers:
            if known is not None:
                best = tier.faster(known.seconds * exp(-fitted().interval_offload))
            else:
                best = tier.best if tier.fits_s <= longest_s else None
            if best is not None:
                yield best
            known = known or best

    @property
    def best(self) -> Candidate | None:
        """The fastest configuration of those that offload no more than they have to."""
        return next(self.fitting(), None)

    @property
    def holds(self) -> bool:
        """True if any batch fits in any layout, however long it takes."""
        return any(tier.holds for tier in self._tiers)


class Site:
    """One cluster with the layouts that a search may use, and what was found out about it."""

    def __init__(
        self,
        clusters: tuple[Cluster, ...],
        kins: tuple[Kin, ...],
        usd_per_s: float | None,
        doubts: int,
    ) -> None:
        """Take the price of the whole cluster, and how many things about its plans are unknown.

        `clusters`: the same instances, as `Pool.clusters` returns them.
        """
        self.cluster = clusters[-1]
        self.kins = kins
        self.usd_per_s = usd_per_s
        self.doubts = doubts
        self.tiers = Tiers(clusters, kins)

    @property
    def name(self) -> str:
        """The instance type."""
        return self.cluster.instance.name

    @property
    def time_s(self) -> float:
        """Lower bound on the time of a plan."""
        return self.tiers.streams[0].bound

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
        self._clusters: dict[tuple[str, int], tuple[Cluster, ...]] = {}

    def clusters(self, space: Space, instance: Instance, count: int) -> tuple[Cluster, ...]:
        """Return instances where nothing is offloaded, where something is, and with both at last.

        Unless steps of the model were timed, offloading is for what does not fit otherwise, or not
        in time: trainings with it took longer than predicted wherever others published them. They
        are the same for all searches.
        """
        key = (instance.name, count)
        if key not in self._clusters:
            offloading = tuple(kind for kind in space.offload if kind != "none")
            spaces = [space]
            if not is_timed(self.task) and offloading and "none" in space.offload:
                tiers: tuple[tuple[Offload, ...], ...] = (("none",), offloading)
                spaces = [*(replace(space, offload=kinds) for kinds in tiers), space]
            self._clusters[key] = tuple(
                Cluster(self.task, each, instance, count, self) for each in spaces
            )
        return self._clusters[key]
