"""Rejections grouped by reason, as a person wants to read them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from orchestration.planning.search.plans import Plans, Reason, Rejected


@dataclass(frozen=True, slots=True)
class Reasons:
    """Instances that were rejected alike."""

    what: str
    reason: str
    detail: str


def rejected(plans: Plans) -> list[Reasons]:
    """Why instances were not taken: those of one reason together, the nearest to a plan first."""
    whole: dict[tuple[Reason, str], list[str]] = {}
    single: dict[tuple[str, Reason], Rejected] = {}
    layouts: list[Reasons] = []
    for one in plans.rejected:
        chosen = plans.chosen
        same = chosen is not None and one.instance_type == chosen.instance_type
        if one.instance_count is None:
            alike = (one.reason, one.detail.replace(one.instance_type, "the type"))
            whole.setdefault(alike, []).append(one.instance_type)
        elif same and chosen is not None and one.instance_count == chosen.instance_count:
            what = f"{one.layout or 'any layout'} on the chosen instances"
            layouts.append(Reasons(what, one.reason, one.detail))
        else:
            key = (one.instance_type, one.reason)
            known = single.get(key)
            if known is None or _figure(one) < _figure(known):
                single[key] = one
    near = [
        Reasons(f"{one.instance_count} x {one.instance_type}", one.reason, one.detail)
        for one in sorted(single.values(), key=lambda one: (_ORDER.index(one.reason), _figure(one)))
    ]
    far = [Reasons(_families(names), *key) for key, names in whole.items()]
    return [*layouts, *near, *far]


_ORDER: Final = (
    "not the best", "deadline", "budget", "run time", "memory", "support", "batch", "price",
    "precision", "not known",
)  # fmt: skip


def _figure(one: Rejected) -> float:
    """How far a rejected one is from being chosen, among those of one reason."""
    for name in ("cost_usd", "need_gib", "time_s"):
        if name in one.figures:
            return one.figures[name]
    return float(one.instance_count or 0)


def _families(names: Iterable[str]) -> str:
    names = list(names)
    if len(names) == 1:
        return names[0]
    families = dict.fromkeys(name.rpartition(".")[0] for name in names)
    return f"{', '.join(f'{family}.*' for family in families)} ({len(names)} types)"
