"""The limits, prices and missing facts that would change an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from orchestration.planning.search.amounts import duration, hourly, money
from orchestration.planning.search.answers.plans import Plan, Plans, Rejected
from orchestration.planning.search.preference import missing_facts


def changes(plans: Plans) -> list[str]:
    """Return clauses, each with the answer that it would lead to."""
    chosen = plans.chosen
    if chosen is None:
        return []
    return [
        *_surer(plans),
        *_other_limits(plans, chosen),
        *_other_aim(plans, chosen),
        *_other_price(plans, chosen),
    ]


def short(plan: Plan) -> str:
    """Return a plan's instances, time and cost."""
    cost = "" if plan.cost_usd is None else f", {money(plan.cost_usd.expected)}"
    time = duration(plan.time_s.expected)
    return f"{plan.instance_count} x {plan.instance_type} ({time}{cost})"


def _surer(plans: Plans) -> Iterator[str]:
    """Name the plan that would be better if its doubts went away."""
    best = plans.passed_over
    if best is not None:
        yield f"{missing_facts(plans.task, best, plans.chosen)}: {short(best)}"


def _other_limits(plans: Plans, chosen: Plan) -> Iterator[str]:
    """Name what a looser limit would allow."""
    objective = plans.objective
    if objective.aim == "cheapest" and objective.deadline_s is not None:
        late = _best(plans, "deadline", "cost_usd")
        if late is not None and _amount(late, "cost_usd") < _cost(chosen):
            yield f"a later deadline: {_rejected(late)}"
    if objective.aim == "fastest" and objective.budget_usd is not None:
        dear = _best(plans, "budget", "time_s")
        if dear is not None and _amount(dear, "time_s") < chosen.time_s.expected:
            yield f"a larger budget: {_rejected(dear)}"


def _best(plans: Plans, reason: str, figure: str) -> Rejected | None:
    broken = [each for each in plans.rejected if each.reason == reason]
    return min(broken, key=lambda each: _amount(each, figure), default=None)


def _amount(rejection: Rejected, name: str) -> float:
    """Return a figure; of what was not predicted, its lower bound."""
    figures = rejection.figures
    return figures.get(name, figures.get(f"least_{name}", float("inf")))


def _rejected(rejection: Rejected) -> str:
    time, cost = _amount(rejection, "time_s"), _amount(rejection, "cost_usd")
    least = "" if "time_s" in rejection.figures else " or more"
    name = f"{rejection.instance_count} x {rejection.instance_type}"
    return f"{name} ({duration(time)}, {money(cost)}{least})"


def _other_aim(plans: Plans, chosen: Plan) -> Iterator[str]:
    """Name the next faster plan, or the cheapest."""
    if plans.objective.aim == "cheapest":
        # More of the same instances, about which no less is known, rather than others.
        faster = _faster(plans.scaling, chosen) or _faster(plans.front, chosen)
        if faster:
            next_one = min(faster, key=_cost)
            yield f"a deadline below {duration(chosen.time_s.high)}: {short(next_one)}"
        return
    priced = [plan for plan in plans.front if plan.cost_usd is not None]
    cheapest = min(priced, key=_cost, default=None)
    if cheapest is not None and _cost(cheapest) < _cost(chosen):
        yield f"an objective of cheapest: {short(cheapest)}"


def _faster(plans: Iterable[Plan], chosen: Plan) -> list[Plan]:
    return [
        plan
        for plan in plans
        if plan.time_s.high < chosen.time_s.expected and plan.cost_usd is not None
    ]


def _cost(plan: Plan) -> float:
    return float("inf") if plan.cost_usd is None else plan.cost_usd.expected


_CLOSE: Final = 1.25
"""A price that would have to fall further is no question of a region or a discount."""


def _other_price(plans: Plans, chosen: Plan) -> Iterator[str]:
    """Name the price at which the nearest other instance type would be the cheapest."""
    if plans.objective.aim != "cheapest" or chosen.cost_usd is None:
        return
    rivals = {
        each.instance_type: each
        for each in reversed(plans.rejected)
        if each.reason == "not the best"
        and 1 < each.figures.get("cost_usd", 0) / chosen.cost_usd.expected < _CLOSE
        and each.instance_type != chosen.instance_type
    }
    if not rivals:
        return
    rival = min(rivals.values(), key=lambda each: each.figures["cost_usd"])
    ratio = chosen.cost_usd.expected / rival.figures["cost_usd"]
    usd = plans.prices.get(rival.instance_type)
    if usd is not None:
        price = usd.usd_per_hour
        yield f"{rival.instance_type} below {hourly(price * ratio)} (now {hourly(price)})"
