"""Comparison of plans by time and cost."""

from __future__ import annotations

from collections.abc import Iterable

from orchestration.planning.search.amounts import DEARER, SLOWER, compared
from orchestration.planning.search.answers.plans import Plan, Rejected


def front(plans: Iterable[Plan]) -> tuple[Plan, ...]:
    """Return the plans that no other beats in both time and cost, the fastest first."""
    best: list[Plan] = []
    cheapest = float("inf")
    for plan in sorted(plans, key=_time_then_cost):
        cost = float("inf") if plan.cost_usd is None else plan.cost_usd.expected
        if cost < cheapest or not best:
            best.append(plan)
            cheapest = cost
    return tuple(best)


def _time_then_cost(plan: Plan) -> tuple[float, float, str, int]:
    cost = float("inf") if plan.cost_usd is None else plan.cost_usd.expected
    return (plan.time_s.expected, cost, plan.instance_type, plan.instance_count)


def beaten(plan: Plan, chosen: Plan, unknown: str = "") -> Rejected:
    """Return why a plan within all limits was not chosen: also what is `unknown` about it."""
    ratio = plan.time_s.expected / chosen.time_s.expected
    parts = [compared(ratio, *SLOWER)]
    if plan.cost_usd is not None and chosen.cost_usd is not None:
        ratio = plan.cost_usd.expected / chosen.cost_usd.expected
        parts.append(compared(ratio, *DEARER))
    return Rejected(
        instance_type=plan.instance_type,
        instance_count=plan.instance_count,
        layout=str(plan.layout),
        reason="not the best",
        detail=", ".join(parts) + (f"; but {unknown}" if unknown else ""),
        figures=figures(plan),
    )


def figures(plan: Plan) -> dict[str, float]:
    """Return the time and, if the price is known, the cost of a plan."""
    cost = {} if plan.cost_usd is None else {"cost_usd": plan.cost_usd.expected}
    return {"time_s": plan.time_s.expected, **cost}


def by_instance(rejection: Rejected) -> tuple[str, int, str]:
    """Return the key that sorts rejections by their instances."""
    return (rejection.instance_type, rejection.instance_count or 0, rejection.layout)
