"""The space of a search: instances, counts, strategies, and ways to save memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from orchestration.catalog import Instance, Price, best_known_region, instances, price
from orchestration.catalog.spot import Paid, SpotHistory
from orchestration.planning.model.configuration import Offload, Recompute

LONGEST_RUN_S: Final = 28 * 24 * 3600
"""Longest run of a training job: 28 days.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_StoppingCondition.html
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Everything that the planner may choose from."""

    types: tuple[str, ...] = ("ml.*",)
    """Instance types; ``*`` stands for any text."""
    counts: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    quotas: Mapping[str, int] = field(default_factory=dict)
    """Largest number of instances by type; ``*`` stands for any text."""
    region: str | None = None
    """Region of all prices; ``None``: the one of most listed prices."""
    spot: bool = False
    spot_saving: float = 0.0
    """Fraction of the on-demand price that spot saves; no table has it, for it changes hourly."""
    spot_history: Mapping[str, SpotHistory] = field(default_factory=dict)
    """Past spot jobs by instance type; enough of them count instead of ``spot_saving``."""
    strategies: frozenset[str] | None = None
    """Allowed kinds of strategies; ``None``: all."""
    recompute: tuple[Recompute, ...] = ("none", "attention", "operators", "full")
    offload: tuple[Offload, ...] = ("none", "optimizer", "all")
    unverified: bool = False
    """Also use strategies if no source says whether they run on an instance."""
    longest_run_s: float = LONGEST_RUN_S
    catalog: Mapping[str, Instance] = field(default_factory=instances)
    prices: Mapping[str, Price] | None = None
    """Prices to use instead of the catalog's."""

    def allowed(self) -> Iterator[Instance]:
        """Return the allowed instance types in the catalog's order."""
        for name, instance in self.catalog.items():
            if instance.training and any(fnmatchcase(name, pattern) for pattern in self.types):
                yield instance

    def counts_of(self, name: str) -> tuple[int, ...]:
        """Return the allowed numbers of instances of a type."""
        quota = [most for pattern, most in self.quotas.items() if fnmatchcase(name, pattern)]
        most = min(quota, default=max(self.counts, default=0))
        within = {count for count in self.counts if count <= most}
        if quota and most and any(count > most for count in self.counts):
            within.add(most)
        return tuple(sorted(within))

    def price(self, name: str) -> Price | None:
        """Return the on-demand price of an instance; ``None``: unknown."""
        if self.prices is not None:
            return self.prices.get(name)
        return price(name, self.priced_in)

    @property
    def priced_in(self) -> str:
        """The region of all prices."""
        return self.region or best_known_region()

    def known_prices(self) -> dict[str, Price]:
        """Return the prices of the allowed instance types, as far as they are known."""
        every = {instance.name: self.price(instance.name) for instance in self.allowed()}
        return {name: price for name, price in every.items() if price is not None}

    def usd_per_s(self, name: str) -> float | None:
        """Return an instance's price per second, less what spot saves; ``None``: unknown."""
        known = self.price(name)
        return None if known is None else known.usd_per_hour * self.paid(name).expected / 3600

    def paid(self, name: str) -> Paid:
        """Return the share of an instance's on-demand price that is paid."""
        if (history := self.measured_spot(name)) is not None:
            return history.paid
        share = 1 - self.spot_saving if self.spot else 1.0
        return Paid(share, share, share)

    def measured_spot(self, name: str) -> SpotHistory | None:
        """Return the spot jobs that say what a plan on an instance type pays; ``None``: none."""
        history = self.spot_history.get(name) if self.spot else None
        return history if history is not None and history.is_enough else None
