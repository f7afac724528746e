"""The search for a plan over every cluster and layout, with reasons against the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Final

from orchestration.catalog import Instance
from orchestration.planning.cost.estimates import memory_room
from orchestration.planning.search.amounts import duration, money
from orchestration.planning.search.answers.comparison import beaten, by_instance, figures, front
from orchestration.planning.search.answers.plans import Plan, Plans, Reason, Rejected, simplest
from orchestration.planning.search.answers.shortfall import missing
from orchestration.planning.search.assessment import (
    broken_limit,
    is_expected_within,
    longest_s,
    plan_of,
)
from orchestration.planning.search.candidates import Cluster
from orchestration.planning.search.layouts import Kin, Sort, by_kind
from orchestration.planning.search.measured.corrections import corrections
from orchestration.planning.search.measured.unknown import Measured
from orchestration.planning.search.objective import CHEAPEST, Objective
from orchestration.planning.search.places.place import Candidate
from orchestration.planning.search.preference import (
    choose,
    doubts,
    doubts_of,
    may_be_chosen,
    why_doubtful,
)
from orchestration.planning.search.sites import Pool, Site, Tiers
from orchestration.planning.search.space import Space
from orchestration.planning.search.strategy_choice import StrategyChoices
from orchestration.planning.search.suitability import unsuitable
from orchestration.planning.search.task import Task


def find_plans(task: Task, space: Space | None = None, objective: Objective = CHEAPEST) -> Plans:
    """Find the best plan for a task, alternatives to it, and reasons against all others.

    Equal arguments give equal answers. A strategy that no source confirms for an instance type is
    used only if there is no other plan, or if `space` allows it.
    """
    space = space or Space()
    considered = 0
    shared: dict[Task, Pool] = {}

    def search(task: Task, space: Space, objective: Objective, *, whole: bool = False) -> Plans:
        nonlocal considered
        pool = shared.setdefault(task, Pool(task))
        answer = _answer(task, space, objective, pool, whole=whole)
        considered += answer.considered
        return answer

    if task.model.kind == "custom":  # the layers to recompute or to offload are not known
        space = replace(space, recompute=("none",), offload=("none",))
    known = corrections(task)
    if isinstance(known, Measured) and not known.timed:
        every = replace(space, longest_run_s=inf)
        answer = _answer(task, every, Objective(aim=objective.aim), Pool(task), whole=True)
        return replace(answer, objective=objective, space=space, missing=(UNMEASURED,))
    answer = search(task, space, objective, whole=True)
    if answer.chosen is None:
        gaps = missing(answer, space, search)
        return replace(answer, missing=gaps, considered=considered)
    return answer


UNMEASURED: Final = (
    "no formula predicts this model, and no step of it was measured yet: run `orchestrate probe`"
)


def _answer(task: Task, space: Space, objective: Objective, shared: Pool, *, whole: bool) -> Plans:
    answer = _Search(task, space, objective, shared).run(whole=whole)
    if answer.chosen is None and not space.unverified:
        doubtful = replace(space, unverified=True)
        unverified = _Search(task, doubtful, objective, shared).run(whole=whole)
        considered = answer.considered + unverified.considered
        best = answer if unverified.chosen is None else unverified
        return replace(best, considered=considered)
    return answer


class _Search:
    """One search, with everything that its clusters share."""

    def __init__(self, task: Task, space: Space, objective: Objective, shared: Pool) -> None:
        self.task = task
        self.space = space
        self.objective = objective
        self.shared = shared
        self.strategies = StrategyChoices(
            task, space, shared.choices.setdefault(space.strategies, {})
        )
        self.rejected: list[Rejected] = []
        self.plans: list[Plan] = []
        """Plans within every limit."""
        self.risky: list[Plan] = []
        """Plans that may break a limit, but are not expected to."""
        self.front: list[tuple[float, float, int]] = []
        """Time, cost and number of doubts of `plans`."""
        self.whole = True

    def run(self, *, whole: bool) -> Plans:
        """Search; unless it is `whole`, for the chosen plan alone."""
        self.whole = whole
        before = self.shared.predictions.considered
        sites = sorted(self.sites(), key=lambda site: site.order)
        if not whole:
            fastest = self.objective.aim == "fastest"
            sites.sort(key=lambda site: site.time_s if fastest else site.cost_usd)
        for site in sites:
            if whole or not self.is_behind(site):
                self.examine(site)
        best, passed_over = choose(self.plans, self.task, self.objective, self.rank)
        chosen, alternatives = self.settled(best) if whole else (best, ())
        listed = [plan for plan in self.plans if plan.price and not plan.price.estimate]
        estimated = chosen is not None and chosen.price is not None and chosen.price.estimate
        for plan in self.plans:
            if chosen is not None and plan is not chosen:
                better = self.is_better(plan, chosen)
                unknown = why_doubtful(self.task, plan, chosen) if better else ""
                self.rejected.append(beaten(plan, chosen, unknown))
        return Plans(
            task=self.task,
            objective=self.objective,
            chosen=chosen,
            front=front(self.plans),
            rejected=tuple(sorted(self.rejected, key=by_instance)),
            alternatives=alternatives,
            scaling=self.scaling(sites, chosen) if whole else (),
            passed_over=passed_over,
            listed=min(listed, key=self.rank, default=None) if estimated else None,
            missing=(),
            considered=self.shared.predictions.considered - before,
            space=self.space,
            region=self.space.priced_in,
            prices=self.space.known_prices(),
            contenders=(*self.plans, *self.risky),
        )

    def rank(self, plan: Plan) -> tuple[object, ...]:
        """Return the sort key of plans: the aim, then time or cost, then simplicity."""
        cost = float("inf") if plan.cost_usd is None else plan.cost_usd.expected
        time = plan.time_s.expected
        first = (cost, time) if self.objective.aim == "cheapest" else (time, cost)
        return (*first, plan.layout.rank, plan.instance_count, plan.instance_type)

    def is_better(self, plan: Plan, chosen: Plan) -> bool:
        """Return whether a plan is expected to serve the objective better than the chosen."""
        return self.rank(plan) < self.rank(chosen)

    def sites(self) -> Iterator[Site]:
        """Return the clusters that could train the task."""
        for instance in self.space.allowed():
            price = self.space.usd_per_s(instance.name)
            refusal = unsuitable(self.task, instance)
            if refusal is None and price is None and self.objective.needs_price:
                refusal = ("price", f"the price of {instance.name} is unknown")
            if refusal is not None:
                self.reject(instance.name, None, *refusal)
                continue
            for count in self.space.counts_of(instance.name):
                if (site := self.site(instance, count, price)) is not None:
                    yield site

    def site(self, instance: Instance, count: int, price: float | None) -> Site | None:
        """Return a cluster with its usable layouts; ``None``: it has none, and was rejected."""
        name = instance.name
        if count > 1 and instance.network_gbps is None:
            self.reject(name, count, "unknown", "the speed of its network is unknown")
            return None
        every = self.shared.kins_of(instance, count)
        usable = self.usable(every, name, count)
        if not usable:
            remarks = self.remarks(every, name, count)
            self.reject(name, count, "support", "; ".join(remarks) or "no layout is possible")
            return None
        known = self.shared.sites.setdefault((name, count), [])
        for site in known:
            if site.kins == usable:
                return site
        clusters = self.shared.clusters(self.space, instance, count)
        if (reason := clusters[-1].undivided(usable)) is not None:
            self.reject(name, count, "batch", reason)
            return None
        usd_per_s = None if price is None else price * count
        unknown = doubts(self.task, instance.accelerator or "", self.space.price(name))
        known.append(Site(clusters, usable, usd_per_s, unknown))
        return known[-1]

    def usable(self, every: Iterable[Kin], name: str, count: int) -> tuple[Kin, ...]:
        usable: dict[Sort, bool] = {}
        for kin in every:
            if kin.sort not in usable:
                usable[kin.sort] = self.strategies.usable(kin.first, name, count)
        return tuple(kin for kin in every if usable[kin.sort])

    def remarks(self, every: Iterable[Kin], name: str, count: int) -> tuple[str, ...]:
        return self.strategies.remarks((kin.first for kin in every), name, count)

    def is_behind(self, site: Site) -> bool:
        """Return whether a known plan serves the objective better than any of this cluster."""
        if self.objective.aim == "fastest":
            return any(time <= site.time_s for time, _, _ in self.front)
        return any(cost <= site.cost_usd for _, cost, _ in self.front)

    def contending_s(self, site: Site) -> float:
        """Return the longest time in which a plan of a cluster is no worse than any known one."""
        if self.objective.aim == "fastest":
            return min((time for time, _, _ in self.front), default=inf)
        least = min((cost for _, cost, _ in self.front), default=inf)
        return least / site.usd_per_s if site.usd_per_s else inf

    def examine(self, site: Site) -> None:
        """Find the best plan of a cluster, unless its bounds are no better than a known plan."""
        cluster = site.cluster
        if any(site.is_beaten_by(*known) for known in self.front):
            detail = f"takes {duration(site.time_s)} or more, even without communication"
            if site.usd_per_s is not None:
                detail += f", and {money(site.cost_usd)}"
            self.reject(site.name, cluster.count, "not the best", detail, figures=site.figures)
            return
        longest = longest_s(self.space, self.objective, site.usd_per_s)
        most_s = longest.seconds if self.whole else min(longest.seconds, self.contending_s(site))
        found = site.tiers.fitting(most_s) if site.time_s <= most_s else ()
        plan = self.within_limits(self.plan(cluster, each) for each in found)
        if plan is None and not self.whole:
            return
        if plan is None and site.tiers.holds:
            least = max(site.time_s, longest.seconds)
            detail = f"takes {duration(least)} or more, {longest.detail}"
            self.reject(site.name, cluster.count, longest.reason, detail, figures=site.figures)
            return
        if plan is None:
            self.reject_misfit(cluster, site.kins)
            return
        if (limit := broken_limit(plan, self.space, self.objective)) is not None:
            if is_expected_within(plan, self.space, self.objective):
                self.risky.append(plan)
            self.reject(
                site.name, cluster.count, *limit, layout=str(plan.layout), figures=figures(plan)
            )
            return
        cost = float("inf") if plan.cost_usd is None else plan.cost_usd.expected
        if may_be_chosen(self.task, plan):
            self.front.append((plan.time_s.expected, cost, doubts_of(self.task, plan)))
        self.plans.append(plan)

    def within_limits(self, plans: Iterable[Plan]) -> Plan | None:
        """Return the first plan that keeps every limit, or else the first.

        A later one, which offloads more, has to be faster even at the high end.
        """
        best, is_within = None, False
        for plan in plans:
            within = broken_limit(plan, self.space, self.objective) is None
            if best is None or (
                plan.time_s.high < best.time_s.expected if within == is_within else within
            ):
                best, is_within = plan, within
        return best

    def plan(self, cluster: Cluster, candidate: Candidate) -> Plan:
        instance, count = cluster.instance, cluster.count
        choice = self.strategies.exact(candidate.layout, instance.name, count)
        return plan_of(self.task, self.space, instance, count, candidate, choice)

    def settled(self, best: Plan | None) -> tuple[Plan | None, tuple[Plan, ...]]:
        """Return a layout that is about as fast as the best one and simpler, and the others."""
        if best is None:
            return None, ()
        every = [best, *self.alternatives(best)]
        most = doubts_of(self.task, best)
        chosen = simplest(
            best,
            (
                plan
                for plan in every
                if doubts_of(self.task, plan) <= most
                and broken_limit(plan, self.space, self.objective) is None
            ),
        )
        self.plans[self.plans.index(best)] = chosen
        others = (plan for plan in every if plan is not chosen)
        return chosen, tuple(sorted(others, key=lambda plan: plan.time_s.expected))

    def alternatives(self, chosen: Plan) -> Iterator[Plan]:
        """Return the best plan of every other layout on the chosen cluster; reject the rest."""
        name, count = chosen.instance_type, chosen.instance_count
        instance = self.space.catalog[name]
        clusters = self.shared.clusters(self.space, instance, count)
        for kind, same in by_kind(self.shared.kins_of(instance, count)).items():
            usable = self.usable(same, name, count)
            if not usable:
                remarks = self.remarks(same, name, count)
                self.reject(name, count, "support", "; ".join(remarks), layout=kind)
                continue
            best = Tiers(clusters, usable).best
            if best is None:
                self.reject_misfit(clusters[-1], usable, kind)
            elif best.layout != chosen.layout:
                yield self.plan(clusters[-1], best)

    def scaling(self, sites: Iterable[Site], chosen: Plan | None) -> tuple[Plan, ...]:
        """Return a plan for each number of instances of the chosen type: of others, the best.

        Others may break a limit.
        """
        if chosen is None:
            return ()
        count = chosen.instance_count
        same = [s for s in sites if s.name == chosen.instance_type and s.cluster.count != count]
        found = [(site.cluster, site.tiers.best) for site in same]
        plans = [self.plan(cluster, best) for cluster, best in found if best is not None]
        return tuple(sorted([chosen, *plans], key=lambda plan: plan.instance_count))

    def reject_misfit(self, cluster: Cluster, kins: Iterable[Kin], layout: str = "") -> None:
        miss = cluster.nearest(kins)
        if miss is None:
            self.reject(cluster.instance.name, cluster.count, "batch",
                        "no micro-batch is possible", layout=layout)  # fmt: skip
            return
        memory = memory_room(cluster.configuration(miss.layout))
        saved = [f"{miss.recompute} recomputation"] * (miss.recompute != "none")
        saved += [f"{miss.offload} offloaded"] * (miss.offload != "none")
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
