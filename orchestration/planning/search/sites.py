"""Clusters in a search, with lower bounds on the time and the cost of their plans."""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.planning.search.candidates import Cluster
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.work import Work


@dataclass(frozen=True, slots=True)
class Site:
    """One cluster, with lower bounds on time and cost."""

    cluster: Cluster
    layouts: tuple[Layout, ...]
    time_s: float
    """Lower bound on the time of a plan."""
    usd_per_s: float | None
    """Price of the whole cluster."""
    doubts: int
    """Number of things about its plans that are not known."""

    @property
    def name(self) -> str:
        """The instance type."""
        return self.cluster.instance.name

    @property
    def works(self) -> list[Work]:
        """Everything that may be tried, what may be fast first."""
        return self.cluster.works(self.layouts)

    @property
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
