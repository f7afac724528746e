"""Where a plan may be looked for: instances, counts, strategies, and what to trade for memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from orchestration.catalog import Instance, Price, instances, price
from orchestration.planning.model.configuration import Offload, Recompute

LONGEST_RUN_S: Final = 28 * 24 * 3600
"""A training job runs for 28 days at the most.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_StoppingCondition.html
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What the planner may choose from."""

    types: tuple[str, ...] = ("ml.*",)
    """Names of instance types, with ``*`` for any text."""
    counts: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    quotas: Mapping[str, int] = field(default_factory=dict)
    """The most instances of a type, by its name, with ``*`` for any text."""
    region: str | None = None
    spot: bool = False
    spot_saving: float = 0.0
    """Share of the price on demand that spot saves; it changes by the hour, and no table has it."""
    strategies: frozenset[str] | None = None
    """Kinds of strategies; ``None``: all."""
    recompute: tuple[Recompute, ...] = ("none", "attention", "operators", "full")
    offload: tuple[Offload, ...] = ("none", "optimizer", "all")
    unverified: bool = False
    """Take strategies, too, of which the sources do not say whether they run on an instance."""
    longest_run_s: float = LONGEST_RUN_S
    catalog: Mapping[str, Instance] = field(default_factory=instances)
    prices: Mapping[str, Price] | None = None
    """Prices to take instead of the catalog's."""

    def allowed(self) -> Iterator[Instance]:
        """The instance types that are allowed, in the catalog's order."""
        for name, one in self.catalog.items():
            if one.training and any(fnmatchcase(name, pattern) for pattern in self.types):
                yield one

    def counts_of(self, name: str) -> tuple[int, ...]:
        """How many instances of a type may be taken."""
        quota = [most for pattern, most in self.quotas.items() if fnmatchcase(name, pattern)]
        most = min(quota, default=max(self.counts, default=0))
        within = {one for one in self.counts if one <= most}
        if quota and most and any(one > most for one in self.counts):
            within.add(most)
        return tuple(sorted(within))

    def price(self, name: str) -> Price | None:
        """What an hour of an instance costs, on demand."""
        if self.prices is not None:
            return self.prices.get(name)
        return price(name, self.region)

    def usd_per_s(self, name: str) -> float | None:
        """Dollars for a second of one instance, less what spot saves."""
        known = self.price(name)
        saving = self.spot_saving if self.spot else 0.0
        return None if known is None else known.usd_per_hour * (1 - saving) / 3600
