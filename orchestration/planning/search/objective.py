"""Objectives: what a plan is chosen for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from orchestration.planning.search.amounts import duration, money

Aim = Literal["cheapest", "fastest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Minimise time or cost, within limits that hold even at the high end of the prediction."""

    aim: Aim = "cheapest"
    deadline_s: float | None = None
    budget_usd: float | None = None

    @property
    def needs_price(self) -> bool:
        """True if plans need instances with a known price."""
        return self.aim == "cheapest" or self.budget_usd is not None

    def __str__(self) -> str:
        text = str(self.aim)
        if self.deadline_s is not None:
            text += f" within {duration(self.deadline_s)}"
        if self.budget_usd is not None:
            text += f" for at most {money(self.budget_usd)}"
        return text


CHEAPEST = Objective()
FASTEST = Objective(aim="fastest")


def by_deadline(seconds: float) -> Objective:
    """Choose the cheapest plan that finishes in time."""
    return Objective(deadline_s=seconds)


def within_budget(usd: float) -> Objective:
    """Choose the fastest plan within a budget."""
    return Objective(aim="fastest", budget_usd=usd)
