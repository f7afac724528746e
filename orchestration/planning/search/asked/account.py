"""Limits of an account in one region: how many instances it may run, and where they are offered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from orchestration.planning.search.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountLimits:
    """Quotas by instance type, and zones with such instances; what is missing is unknown."""

    region: str
    training: Mapping[str, int]
    """Quotas of training jobs."""
    spot: Mapping[str, int]
    """Quotas of training jobs on managed spot."""
    zones: Mapping[str, tuple[str, ...]]

    def most(self, name: str, *, spot: bool) -> int | None:
        """Return how many instances of a type may run at once; ``None``: unknown."""
        if self.zones and name not in self.zones:
            return 0
        return (self.spot if spot else self.training).get(name)

    def within(self, space: Space) -> Space:
        """Return a space with these limits, in addition to its own."""
        quotas = dict(space.quotas)
        for instance in space.allowed():
            most = self.most(instance.name, spot=space.spot)
            if most is not None:
                quotas[instance.name] = min(most, quotas.get(instance.name, most))
        return replace(space, quotas=quotas)

    def lines(self, space: Space, chosen: tuple[str, int] | None) -> list[str]:
        """Return what matters to a plan: the limit of what it takes, and types without any."""
        lines = []
        if chosen is not None:
            name, count = chosen
            most = self.most(name, spot=space.spot)
            quota = "an unknown quota" if most is None else f"a quota of {most:,}"
            zones = self.zones.get(name, ())
            where = f", offered in {', '.join(zones)}" if zones else ""
            lines.append(f"{self.region} has {quota} for {name} ({count} taken){where}")
        none = [
            each.name
            for each in space.allowed()
            if each.accelerator and self.most(each.name, spot=space.spot) == 0
        ]
        if none:
            shown = ", ".join(none[:_SHOWN])
            more = f" and {len(none) - _SHOWN} more" if len(none) > _SHOWN else ""
            lines.append(f"none of {shown}{more}: ask for a quota, or take another region")
        return lines


_SHOWN = 4
