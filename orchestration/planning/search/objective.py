"""What a plan is chosen for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from orchestration.planning.search.amounts import duration, money

Aim = Literal["cheapest", "fastest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What to be least, and what not to exceed even at the pessimistic end of the prediction."""

    aim: Aim = "cheapest"
    deadline_s: float | None = None
    budget_usd: float | None = None

    @property
    def needs_price(self) -> bool:
        """Whether an instance without a known price is of no use."""
        return self.aim == "cheapest" or self.budget_usd is not None

    def __str__(self) -> str:
        text = str(self.aim)
        if self.deadline_s is not None:
            text += f" within {duration(self.deadline_s)}"
        if self.budget_usd is not None:
            text += f" for {money(self.budget_usd)} at the most"
        return text


CHEAPEST = Objective()
FASTEST = Objective(aim="fastest")


def by_deadline(seconds: float) -> Objective:
    """The cheapest plan that is ready in time."""
    return Objective(deadline_s=seconds)


def within_budget(usd: float) -> Objective:
    """The fastest plan that costs no more."""
    return Objective(aim="fastest", budget_usd=usd)
