"""The rejections that came nearest to the chosen plan, each by its real reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestration.planning.search.amounts import DEARER, SLOWER, compared, duration
from orchestration.planning.search.answers.plans import Plan, Plans, Rejected

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Instances that came near to the choice, and why they were not chosen."""

    instance_type: str
    instance_count: int
    why: str

    def __str__(self) -> str:
        return f"{self.instance_count} x {self.instance_type}: {self.why}"


def nearest(plans: Plans, most: int = _SHOWN) -> list[Near]:
    """Return the nearest rejections, of one instance type each if there are enough types.

    Those nearest by the objective's cost or time come first, then those whose memory falls short
    by least.
    """
    chosen = plans.chosen
    if chosen is None:
        return []
    own = (chosen.instance_type, chosen.instance_count)
    others = [
        rejection
        for rejection in plans.rejected
        if rejection.instance_count not in (None, 0)
        and (rejection.instance_type, rejection.instance_count) != own
    ]
    ranked = sorted(others, key=lambda rejection: _order(plans, rejection))
    of_types: dict[str, Rejected] = {}
    for rejection in sorted(ranked, key=lambda rejection: _order_in_type(plans, rejection)):
        of_types.setdefault(rejection.instance_type, rejection)
    same = of_types.pop(chosen.instance_type, None)
    first = sorted(of_types.values(), key=lambda rejection: _order(plans, rejection))
    rest = [same] if same is not None else []
    rest += [each for each in ranked if each is not same and each not in first]
    return [_near(plans, chosen, each) for each in [*first[:most], *rest][:most]]


def value(plans: Plans, rejection: Rejected) -> float | None:
    """Return the cost or time, by the objective; of what was not predicted, the least."""
    name = "cost_usd" if plans.objective.aim == "cheapest" else "time_s"
    figures = rejection.figures
    return figures.get(name, figures.get(f"least_{name}"))


def _order(plans: Plans, rejection: Rejected) -> tuple[int, float, str, int]:
    amount, count = value(plans, rejection), rejection.instance_count or 0
    if amount is not None:
        return (0, amount, rejection.instance_type, count)
    need = rejection.figures.get("need_gib")
    if need is not None:
        return (1, need / rejection.figures["device_gib"], rejection.instance_type, count)
    return (2, 0.0, rejection.instance_type, count)


def _order_in_type(plans: Plans, rejection: Rejected) -> tuple[int, float]:
    """Prefer what keeps every limit, and then what breaks one by least."""
    if rejection.reason in ("deadline", "run time"):
        figures = rejection.figures
        return (1, figures.get("time_s", figures.get("least_time_s", 0.0)))
    kind, amount, *_ = _order(plans, rejection)
    return (0 if rejection.reason == "not the best" else 1 + kind, amount)


def _near(plans: Plans, chosen: Plan, rejection: Rejected) -> Near:
    return Near(
        instance_type=rejection.instance_type,
        instance_count=rejection.instance_count or 0,
        why=_bound(plans, chosen, rejection) or rejection.detail,
    )


def _bound(plans: Plans, chosen: Plan, rejection: Rejected) -> str | None:
    """Compare a lower bound with the chosen plan; ``None``: the rejection is no bound."""
    least = rejection.figures.get("least_time_s")
    if rejection.reason != "not the best" or least is None:
        return None
    cost = rejection.figures.get("least_cost_usd")
    by_cost = plans.objective.aim == "cheapest"
    if by_cost and cost is not None and chosen.cost_usd is not None:
        text = _at_least(cost / chosen.cost_usd.expected, "cheaper", DEARER)
        return f"{text}, in {duration(least)} or more"
    return _at_least(least / chosen.time_s.expected, "faster", SLOWER)


def _at_least(ratio: float, better: str, words: tuple[str, str, str]) -> str:
    if 1 <= ratio < _SAME:
        return f"hardly {better} at best"
    text = compared(ratio, *words)
    return f"at best {text}" if ratio < 1 else f"at least {text}"


_SAME: Final = 1.01
