"""Comparison of plans by time and cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

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


def _compared(ratio: float, more: str, less: str, times: str) -> str:
    """Format a ratio as people say it: ``12% slower``, ``takes 8 times as long``."""
    if ratio >= _TWICE:
        return times.format(f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}")
    share, word = (ratio - 1, more) if ratio >= 1 else (1 - ratio, less)
    return f"less than 1% {word}" if share < 0.01 else f"{share:.0%} {word}"


_TWICE: Final = 1.995


def beaten(plan: Plan, chosen: Plan, unknown: str = "") -> Rejected:
    """Return why a plan within all limits was not chosen: also what is `unknown` about it."""
    ratio = plan.time_s.expected / chosen.time_s.expected
    parts = [_compared(ratio, "slower", "faster", "takes {} times as long")]
    figures = {"time_s": plan.time_s.expected}
    if plan.cost_usd is not None:
        figures["cost_usd"] = plan.cost_usd.expected
        if chosen.cost_usd is not None:
            ratio = plan.cost_usd.expected / chosen.cost_usd.expected
            parts.append(_compared(ratio, "more expensive", "cheaper", "costs {} times as much"))
    return Rejected(
        instance_type=plan.instance_type,
        instance_count=plan.instance_count,
        layout=str(plan.layout),
        reason="not the best",
        detail=" and ".join(parts) + (f", but {unknown}" if unknown else ""),
        figures=figures,
    )


def by_instance(rejection: Rejected) -> tuple[str, int, str]:
    """Return the key that sorts rejections by their instances."""
    return (rejection.instance_type, rejection.instance_count or 0, rejection.layout)
