"""An account in one region: how many instances it may run, where they are, what spot saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from orchestration.catalog.spot import ENOUGH, SpotHistory
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
    spot_history: Mapping[str, SpotHistory] = field(default_factory=dict)
    """Past spot jobs by instance type."""
    unread: str = ""
    """The error that kept spot jobs from being read."""

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
        return replace(space, quotas=quotas, spot_history=self.spot_history)

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
        return [*lines, *self._spot_lines(space, chosen)]

    def _spot_lines(self, space: Space, chosen: tuple[str, int] | None) -> Iterator[str]:
        """Yield what spot saved on the allowed types, the chosen one first."""
        if self.unread:
            yield f"what spot saved can't be read ({self.unread})"
        names = [each.name for each in space.allowed() if each.name in self.spot_history]
        names.sort(key=lambda name: chosen is None or name != chosen[0])
        for name in names[:_SHOWN]:
            history = self.spot_history[name]
            jobs = [f"{job.name} {1 - job.paid:.0%}" for job in history.jobs]
            more = f" and {len(jobs) - _SHOWN} more" if len(jobs) > _SHOWN else ""
            few = "" if history.is_enough else f"; a plan counts it from {ENOUGH} jobs on"
            yield (
                f"spot saved {history.paid.saving()} on {name}: {history} "
                f"({', '.join(jobs[:_SHOWN])}{more}){few}"
            )
        if len(names) > _SHOWN:
            yield f"spot jobs on {len(names) - _SHOWN} more types"


_SHOWN = 4
