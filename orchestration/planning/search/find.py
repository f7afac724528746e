"""The search for a plan: every cluster, every layout, and why the others were not taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from orchestration.catalog import Instance
from orchestration.planning.cost.estimates import memory_room
from orchestration.planning.search.amounts import duration, money
from orchestration.planning.search.assessment import broken_limit, plan_of
from orchestration.planning.search.candidates import Bounds, Candidate, Cluster, Work
from orchestration.planning.search.comparison import beaten, by_instance, front
from orchestration.planning.search.layouts import Layout, layouts
from orchestration.planning.search.objective import CHEAPEST, Objective
from orchestration.planning.search.plans import Plan, Plans, Reason, Rejected
from orchestration.planning.search.shortfall import missing
from orchestration.planning.search.space import Space
from orchestration.planning.search.strategy_choice import Starts
from orchestration.planning.search.suitability import unsuitable
from orchestration.planning.search.task import Task


def find_plans(task: Task, space: Space | None = None, objective: Objective = CHEAPEST) -> Plans:
    """The best plan for a task, what else is worth looking at, and what was rejected and why.

    The same arguments give the same answer. A strategy that no source vouches for on an instance is
    only taken where nothing else will do, or where `space` asks for it.
    """
    space = space or Space()
    answer = _answer(task, space, objective)
    if answer.chosen is None:
        return replace(answer, missing=missing(answer, space, _answer))
    return answer


def _answer(task: Task, space: Space, objective: Objective) -> Plans:
    answer = _Search(task, space, objective).run()
    if answer.chosen is None and not space.unverified:
        bolder = _Search(task, replace(space, unverified=True), objective).run()
        return answer if bolder.chosen is None else bolder
    return answer


@dataclass(frozen=True, slots=True)
class _Site:
    """One cluster, and what its devices would compute at their best."""

    cluster: Cluster
    layouts: tuple[Layout, ...]
    works: tuple[Work, ...]
    usd_per_s: float | None
    """Of the whole cluster."""

    @property
    def name(self) -> str:
        return self.cluster.instance.name

    @property
    def time_s(self) -> float:
        """No plan on it is faster."""
        return self.works[0].bound

    @property
    def cost_usd(self) -> float:
        """No plan on it is cheaper."""
        return float("inf") if self.usd_per_s is None else self.works[0].bound * self.usd_per_s

    @property
    def order(self) -> tuple[float, float, str, int]:
        """The most promising first: then the others need not be looked at."""
        return (self.cost_usd * self.time_s, self.time_s, self.name, self.cluster.count)


class _Search:
    """One search; keeps what several clusters share."""

    def __init__(self, task: Task, space: Space, objective: Objective) -> None:
        self.task = task
        self.space = space
        self.objective = objective
        self.starts = Starts(task, space)
        self.bounds: Bounds = {}
        self.rejected: list[Rejected] = []
        self.plans: list[Plan] = []
        """Within every limit."""
        self.front: list[tuple[float, float]] = []
        """Time and cost of the plans that no other beats."""
        self.considered = 0

    def run(self) -> Plans:
        sites = sorted(self.sites(), key=lambda one: one.order)
        for site in sites:
            self.look(site)
        chosen = min(self.plans, key=self.rank, default=None)
        best = front(self.plans)
        for plan in self.plans:
            if chosen is not None and plan is not chosen:
                self.rejected.append(beaten(plan, chosen))
        alternatives = self.alternatives(chosen)
        return Plans(
            task=self.task,
            objective=self.objective,
            chosen=chosen,
            front=best,
            rejected=tuple(sorted(self.rejected, key=by_instance)),
            alternatives=alternatives,
            scaling=self.scaling(sites, chosen),
            missing=(),
            considered=self.considered,
        )

    def rank(self, plan: Plan) -> tuple[object, ...]:
        """Plans by the aim, then by the other of time and cost, then simple ones first."""
        cost = float("inf") if plan.cost_usd is None else plan.cost_usd.expected
        time = plan.time_s.expected
        first = (cost, time) if self.objective.aim == "cheapest" else (time, cost)
        return (*first, plan.layout.rank, plan.instance_count, plan.instance_type)

    def sites(self) -> Iterator[_Site]:
        """The clusters that are worth a look."""
        for one in self.space.allowed():
            price = self.space.usd_per_s(one.name)
            refusal = unsuitable(self.task, one)
            if refusal is None and price is None and self.objective.needs_price:
                refusal = ("price", f"no price of {one.name} is known")
            if refusal is not None:
                self.reject(one.name, None, *refusal)
                continue
            for count in self.space.counts_of(one.name):
                if (site := self.site(one, count, price)) is not None:
                    yield site

    def site(self, one: Instance, count: int, price: float | None) -> _Site | None:
        """A cluster with the layouts that some strategy starts on it."""
        if count > 1 and one.network_gbps is None:
            self.reject(one.name, count, "not known", "the speed of its network is not known")
            return None
        cluster = Cluster(self.task, self.space, one, count, self.bounds)
        every = tuple(layouts(self.task, one, count))
        usable = tuple(layout for layout in every if self.starts.usable(layout, one.name, count))
        if not usable:
            remarks = self.starts.remarks(every, one.name, count)
            self.reject(one.name, count, "support", "; ".join(remarks) or "no layout is possible")
            return None
        if (why := cluster.undivided(usable)) is not None:
            self.reject(one.name, count, "batch", why)
            return None
        paid = None if price is None else price * count
        return _Site(cluster, usable, tuple(cluster.works(usable)), paid)

    def look(self, site: _Site) -> None:
        """Find the best plan of a cluster, unless it can't be as good as one that is known."""
        cluster = site.cluster
        if any(t <= site.time_s and c <= site.cost_usd for t, c in self.front):
            detail = f"takes {duration(site.time_s)} or more, even without communication"
            figures = {"time_s": site.time_s}
            if site.usd_per_s is not None:
                detail += f", and {money(site.cost_usd)}"
                figures["cost_usd"] = site.cost_usd
            self.reject(site.name, cluster.count, "not the best", detail, figures=figures)
            return
        found = cluster.best(site.works)
        self.considered += cluster.considered
        if found is None:
            self.reject_misfit(cluster)
            return
        plan = self.plan(cluster, found)
        if (limit := broken_limit(plan, self.space, self.objective)) is not None:
            self.reject(site.name, cluster.count, *limit, layout=str(plan.layout))
            return
        cost = float("inf") if plan.cost_usd is None else plan.cost_usd.expected
        self.front.append((plan.time_s.expected, cost))
        self.plans.append(plan)

    def plan(self, cluster: Cluster, found: Candidate) -> Plan:
        one, count = cluster.instance, cluster.count
        start = self.starts.exactly(found.layout, one.name, count)
        return plan_of(self.task, self.space, one, count, found, start)

    def alternatives(self, chosen: Plan | None) -> tuple[Plan, ...]:
        """The best of every other layout on the chosen cluster; says why where there is none."""
        if chosen is None:
            return ()
        one, count = self.space.catalog[chosen.instance_type], chosen.instance_count
        plans = []
        for same in _kinds(layouts(self.task, one, count)):
            cluster = Cluster(self.task, self.space, one, count, self.bounds)
            usable = [each for each in same if self.starts.usable(each, one.name, count)]
            if not usable:
                remarks = self.starts.remarks(same, one.name, count)
                self.reject(one.name, count, "support", "; ".join(remarks), layout=_kind(same[0]))
                continue
            found = cluster.best(cluster.works(usable))
            self.considered += cluster.considered
            if found is None:
                self.reject_misfit(cluster, _kind(same[0]))
            elif found.layout != chosen.layout:
                plans.append(self.plan(cluster, found))
        return tuple(sorted(plans, key=lambda plan: plan.time_s.expected))

    def scaling(self, sites: Iterable[_Site], chosen: Plan | None) -> tuple[Plan, ...]:
        """The best plan for each number of instances of the chosen type, whatever the limits."""
        plans = []
        for site in sites:
            if chosen is not None and site.name == chosen.instance_type:
                found = site.cluster.best(site.works)
                if found is not None:
                    plans.append(self.plan(site.cluster, found))
        return tuple(sorted(plans, key=lambda plan: plan.instance_count))

    def reject_misfit(self, cluster: Cluster, layout: str = "") -> None:
        miss = cluster.nearest
        if miss is None:
            self.reject(cluster.instance.name, cluster.count, "batch",
                        "no micro-batch is possible", layout=layout)  # fmt: skip
            return
        memory = memory_room(miss.configuration)
        c = miss.configuration
        saved = [f"{c.recompute} recomputation"] if c.recompute != "none" else []
        saved += [f"{c.offload} offloaded"] if c.offload != "none" else []
        how = f" with {' and '.join(saved)}" if saved else ""
        self.reject(
            cluster.instance.name, cluster.count, "memory",
            f"needs {miss.need_gib:,.1f} of {memory:,.1f} GiB per device as {miss.layout}{how}",
            layout=layout, figures={"need_gib": miss.need_gib, "device_gib": memory},
        )  # fmt: skip

    def reject(
        self,
        name: str,
        count: int | None,
        reason: Reason,
        detail: str,
        *,
        layout: str = "",
        figures: Mapping[str, float] | None = None,
    ) -> None:
        self.rejected.append(
            Rejected(
                instance_type=name, instance_count=count, layout=layout, reason=reason,
                detail=detail, figures=figures or {},
            )
        )  # fmt: skip


def _kind(layout: Layout) -> str:
    """Layouts that a person would call the same."""
    if layout.family == "sharded":
        return {1: "ZeRO-1", 2: "ZeRO-2", 3: "FSDP"}[layout.zero]
    return {
        "single": "one device", "replicated": "data parallel", "servers": "servers",
        "smp_v1": "SMP v1", "smp_v2": "SMP v2", "neuron": "NeuronX",
    }[layout.family]  # fmt: skip


def _kinds(every: Iterable[Layout]) -> list[list[Layout]]:
    kinds: dict[str, list[Layout]] = {}
    for one in every:
        kinds.setdefault(_kind(one), []).append(one)
    return list(kinds.values())
