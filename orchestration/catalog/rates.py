"""Prices of what is not an instance: requests, storage, transfers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Final

from orchestration.catalog.tables import rows, sources

_USUAL_REGION: Final = "us-east-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """US dollars for one unit of something."""

    key: str
    """``datasync.BASIC.gb``."""
    usd: float
    per: str
    """The unit: ``GB-month``, ``1,000 transitions``."""
    region: str
    """The region whose price it is."""
    date: str | None
    """The day of the price, ``YYYY-MM-DD``; ``None`` if its source has no date."""
    estimate: bool
    """Another region's, or derived; not from a price list."""
    note: str
    source: str

    @property
    def read(self) -> str:
        """The day on which its source was read, ``YYYY-MM-DD``."""
        return sources()[self.source].read

    @property
    def dated(self) -> str:
        """The day of the price as its source dates it, or the day of reading: for people."""
        return self.date or f"read {self.read}"


@cache
def rates() -> Mapping[str, Mapping[str, Rate]]:
    """Return the prices by their keys, and by region."""
    found: dict[str, dict[str, Rate]] = {}
    for row in rows("rates.csv"):
        rate = Rate(
            key=row["key"],
            usd=float(row["usd"]),
            per=row["per"],
            region=row["region"],
            date=row["date"] or None,
            estimate=row["estimate"] == "yes",
            note=row["note"],
            source=row["source"],
        )
        found.setdefault(rate.key, {})[rate.region] = rate
    return MappingProxyType({key: MappingProxyType(regions) for key, regions in found.items()})


def rate(key: str, region: str) -> Rate | None:
    """Look up a price; ``None`` if no source states one.

    Where only another region's is known it is an estimate, as prices differ between regions.

    >>> rate("transitions", "us-west-1").usd, rate("transitions", "us-west-1").estimate
    (0.0279, False)
    >>> rate("transitions", "eu-north-1").usd, rate("transitions", "eu-north-1").estimate
    (0.025, True)
    """
    regions = rates().get(key)
    if regions is None or region in regions:
        return None if regions is None else regions[region]
    known = regions.get(_USUAL_REGION) or next(iter(regions.values()))
    remark = f"the price in {known.region}; {region} may differ"
    note = f"{known.note}; {remark}" if known.note else remark
    return replace(known, estimate=True, note=note)
