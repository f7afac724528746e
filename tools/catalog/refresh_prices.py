"""Write the catalog's prices again from the AWS price list; needs an account, and costs nothing.

    python tools/catalog/refresh_prices.py [--region us-east-1] [--profile NAME] [--check]

Asks the Price List Query API (permission `pricing:GetProducts`) for SageMaker's training instances
on demand in one region. Types that it does not name keep their rows, with their dates and sources.
https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
"""

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

CATALOG = Path(__file__).parents[2] / "orchestration" / "catalog"
# The API answers in a few regions only, about all of them.
API_REGION = "us-east-1"


def listed(client: Any, region: str) -> dict[str, float]:
    """US dollars for an hour of each training instance type in a region."""
    pages = client.get_paginator("get_products").paginate(
        ServiceCode="AmazonSageMaker",
        Filters=[{"Type": "TERM_MATCH", "Field": "regionCode", "Value": region}],
    )
    found: dict[str, set[float]] = {}
    for page in pages:
        for text in page["PriceList"]:
            product = json.loads(text)
            attributes = product["product"]["attributes"]
            if attributes.get("component") == "Training" and "instanceName" in attributes:
                found.setdefault(attributes["instanceName"], set()).update(_hourly(product))
    several = {name: sorted(prices) for name, prices in found.items() if len(prices) > 1}
    if several:
        sys.exit(f"more than one price on demand: {several}; look, and choose")
    return {name: next(iter(prices)) for name, prices in found.items() if prices}


def _hourly(product: Mapping[str, Any]) -> Iterator[float]:
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            dollars = float(dimension["pricePerUnit"].get("USD", 0))
            # A free tier is listed beside the price.
            if dollars > 0 and dimension.get("unit", "Hrs").lower().startswith("h"):
                yield dollars


def refreshed(
    rows: Iterable[Mapping[str, str]], prices: Mapping[str, float], region: str, day: date
) -> list[dict[str, str]]:
    """The rows with the prices in their places, further types behind them."""
    new = {
        name: {
            "name": name,
            "usd_per_hour": f"{dollars:g}",
            "region": region,
            "date": day.isoformat(),
            "estimate": "no",
            "ec2_usd_per_hour": "",
            "note": "",
            "source": source_key(day),
        }
        for name, dollars in prices.items()
    }
    kept = [
        {**row, **new[row["name"]], "ec2_usd_per_hour": row["ec2_usd_per_hour"]}
        if row["name"] in new
        else dict(row)
        for row in rows
    ]
    known = {row["name"] for row in kept}
    return [*kept, *(new[name] for name in sorted(new) if name not in known)]


def source_key(day: date) -> str:
    """What rows call the price list of a day."""
    return f"aws-price-list-{day.isoformat()}"


def written(rows: list[dict[str, str]]) -> str:
    """Rows as a table."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def read(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((CATALOG / name).read_text(encoding="utf-8").splitlines()))


def main() -> None:
    import boto3

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--region", default="us-east-1", help="whose prices")
    parser.add_argument("--profile", help="AWS profile; else as the environment says")
    parser.add_argument("--check", action="store_true", help="write nothing, show what differs")
    options = parser.parse_args()
    session = boto3.Session(profile_name=options.profile)
    prices = listed(session.client("pricing", region_name=API_REGION), options.region)
    if not prices:
        sys.exit(f"the price list names no training instance in {options.region}")
    today = date.today()
    old = read("prices.csv")
    before = {row["name"]: float(row["usd_per_hour"]) for row in old}
    for name, dollars in sorted(prices.items()):
        if before.get(name) != dollars:
            print(f"{name}: {before.get(name, 'unknown')} -> {dollars:g}")
    if options.check:
        return
    (CATALOG / "prices.csv").write_text(written(refreshed(old, prices, options.region, today)))
    sources = [row for row in read("sources.csv") if row["key"] != source_key(today)]
    what = f"AWS Price List Query API, AmazonSageMaker, Training, {options.region}"
    sources.append({"key": source_key(today), "what": what, "read": today.isoformat()})
    (CATALOG / "sources.csv").write_text(written(sources))


if __name__ == "__main__":
    main()
