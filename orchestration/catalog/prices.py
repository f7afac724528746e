"""Prices of one hour of an instance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

from orchestration.catalog.tables import number, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for one hour of one instance on demand."""

    instance_type: str
    usd_per_hour: float
    region: str
    date: str | None
    """The day of the price, ``YYYY-MM-DD``; ``None`` if its source has no date."""
    estimate: bool
    """Derived from another price, or from another region's; not from a price list."""
    note: str
    source: str
    ec2_usd_per_hour: float | None = None
    """The same machine on EC2."""


@cache
def prices() -> Mapping[str, Price]:
    """Return one price per instance type, for the region that its source names."""
    return MappingProxyType({row["name"]: _price(row) for row in rows("prices.csv")})


def price(instance_type: str, region: str | None = None) -> Price | None:
    """Look up the price of an instance type; ``None`` if no source states one.

    For a region other than the source's it is an estimate, as prices differ between regions.
    """
    known = prices().get(instance_type)
    if known is None or region is None or region == known.region:
        return known
    remark = f"the price in {known.region}; {region} may differ"
    note = f"{known.note}; {remark}" if known.note else remark
    return replace(known, region=region, estimate=True, note=note)


@cache
def best_known_region() -> str:
    """Return the region of most listed prices: the one to plan for if nobody names any."""
    listed = Counter(price.region for price in prices().values() if not price.estimate)
    return max(listed, key=lambda region: (listed[region], region))


def _price(row: Mapping[str, str]) -> Price:
    return Price(
        instance_type=row["name"],
        usd_per_hour=float(row["usd_per_hour"]),
        region=row["region"],
        date=row["date"] or None,
        estimate=row["estimate"] == "yes",
        note=row["note"],
        source=row["source"],
        ec2_usd_per_hour=number(row["ec2_usd_per_hour"]),
    )
