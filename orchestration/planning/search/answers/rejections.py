"""Rejections grouped by reason, for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orchestration.planning.search.answers.plans import Plan, Plans, Reason, Rejected


@dataclass(frozen=True, slots=True)
class Reasons:
    """Instances or layouts that were rejected for the same reason."""

    what: str
    reason: str
    detail: str


def rejected(plans: Plans) -> list[Reasons]:
    """Return the reasons of all rejections: other layouts on the chosen instances come first.

    Then follows, of each instance type and reason, the rejection that was nearest to a plan, and at
    the end types that can't train the task at all, those with one reason together.
    """
    types: dict[tuple[Reason, str], list[str]] = {}
    nearest: dict[tuple[str, Reason], Rejected] = {}
    layouts: list[Reasons] = []
    for rejection in plans.rejected:
        name, reason = rejection.instance_type, rejection.reason
        if rejection.instance_count is None:
            types.setdefault((reason, rejection.detail.replace(name, "the type")), []).append(name)
        elif plans.chosen is not None and _same_instances(rejection, plans.chosen):
            what = f"{rejection.layout or 'any layout'} on the chosen instances"
            layouts.append(Reasons(what, reason, rejection.detail))
        else:
            known = nearest.get((name, reason))
            if known is None or _distance(rejection) < _distance(known):
                nearest[name, reason] = rejection
    return [
        *layouts,
        *map(_reasons, sorted(nearest.values(), key=_order)),
        *(Reasons(_families(names), *key) for key, names in types.items()),
    ]


_ORDER: Final = (
    "not the best", "deadline", "budget", "run time", "memory", "support", "batch", "price",
    "precision", "unknown",
)  # fmt: skip


def _order(rejection: Rejected) -> tuple[int, float]:
    return _ORDER.index(rejection.reason), _distance(rejection)


def _reasons(rejection: Rejected) -> Reasons:
    what = f"{rejection.instance_count} x {rejection.instance_type}"
    return Reasons(what, rejection.reason, rejection.detail)


def _same_instances(rejection: Rejected, plan: Plan) -> bool:
    return (rejection.instance_type, rejection.instance_count) == (
        plan.instance_type,
        plan.instance_count,
    )


def _distance(rejection: Rejected) -> float:
    """Return how far a rejection is from a plan, comparable among those of one reason."""
    for name in ("cost_usd", "least_cost_usd", "need_gib", "time_s", "least_time_s"):
        if name in rejection.figures:
            return rejection.figures[name]
    return float(rejection.instance_count or 0)


def _families(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    families = dict.fromkeys(name.rpartition(".")[0] for name in names)
    return f"{', '.join(f'{family}.*' for family in families)} ({len(names)} types)"
