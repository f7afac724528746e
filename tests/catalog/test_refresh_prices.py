"""The script that refreshes prices, against the price list's own shapes."""

from __future__ import annotations

import importlib.util
import json
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "tools/catalog/refresh_prices.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("refresh_prices", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def product(name: str, component: str, *dollars: str) -> str:
    dimensions = {
        f"d{number}": {"unit": "Hrs", "pricePerUnit": {"USD": price}}
        for number, price in enumerate(dollars)
    }
    attributes = {"instanceName": name, "component": component, "regionCode": "eu-west-1"}
    terms = {"OnDemand": {"t": {"priceDimensions": dimensions}}}
    return json.dumps({"product": {"attributes": attributes}, "terms": terms})


def pricing(*pages: list[str]) -> Any:
    boto3 = pytest.importorskip("boto3")
    from botocore.stub import Stubber

    client = boto3.client(
        "pricing", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    stubber = Stubber(client)
    asked: dict[str, Any] = {
        "ServiceCode": "AmazonSageMaker",
        "Filters": [{"Type": "TERM_MATCH", "Field": "regionCode", "Value": "eu-west-1"}],
    }
    for number, page in enumerate(pages):
        more = {"NextToken": str(number + 1)} if number + 1 < len(pages) else {}
        given = {**asked, **({"NextToken": str(number)} if number else {})}
        stubber.add_response("get_products", {"PriceList": page, **more}, given)
    stubber.activate()
    return client


def test_only_training_on_demand_is_read_from_every_page(script: ModuleType) -> None:
    client = pricing(
        [product("ml.p4d.24xlarge", "Training", "0.0", "30.5"), product("ml.x", "Hosting", "9")],
        [product("ml.g5.xlarge", "Training", "1.6")],
    )
    assert script.listed(client, "eu-west-1") == {"ml.p4d.24xlarge": 30.5, "ml.g5.xlarge": 1.6}


def test_two_prices_are_a_person_s_to_choose_from(script: ModuleType) -> None:
    client = pricing([product("ml.p4d.24xlarge", "Training", "30.5", "31")])
    with pytest.raises(SystemExit, match="more than one price"):
        script.listed(client, "eu-west-1")


def test_what_is_not_listed_keeps_its_row_and_the_catalog_s_form_stays(script: ModuleType) -> None:
    old = script.read("prices.csv")
    new = script.refreshed(
        old, {"ml.p4d.24xlarge": 30.5, "ml.new.xlarge": 1}, "eu-west-1", date(2026, 11, 21)
    )
    changed = {row["name"]: row for row in new if row not in old}
    assert set(changed) == {"ml.p4d.24xlarge", "ml.new.xlarge"}
    p4d = changed["ml.p4d.24xlarge"]
    assert (p4d["usd_per_hour"], p4d["estimate"], p4d["date"]) == ("30.5", "no", "2026-11-21")
    assert p4d["ec2_usd_per_hour"] != ""
    assert [row["name"] for row in new][: len(old)] == [row["name"] for row in old]
    catalog = SCRIPT.parents[2] / "orchestration/catalog/prices.csv"
    assert script.written(old) == catalog.read_text()
