"""``plan --account``: quotas and offerings, as AWS's own answers at the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest
import typer
from botocore.stub import Stubber

from orchestration.cli.commands import planning
from orchestration.cli.commands.reading.limits import limits
from orchestration.errors import DeployError
from orchestration.planning.search.asked.account import AccountLimits

REQUEST = """\
model: {parameters: 1.0e9}
sequence: 1024
batch: {samples: 64}
data: {tokens: 1.0e9}
instances: {types: [ml.p4d.24xlarge, ml.p5.48xlarge], counts: [1, 2, 4, 8]SPOT}
objective: fastest
"""


class Account:
    """A session whose two clients answer what AWS would, in its order."""

    region_name = "us-east-1"

    def __init__(self, applied: dict[str, float], zones: dict[str, list[str]]) -> None:
        self.clients = {name: boto3.client(name, region_name=self.region_name)
                        for name in ("service-quotas", "ec2")}  # fmt: skip
        self.stubs = {name: Stubber(client) for name, client in self.clients.items()}
        defaults = {"ml.p4d.24xlarge for training job usage": 0.0,
                    "ml.p4d.24xlarge for spot training job usage": 1.0,
                    "ml.p5.48xlarge for training job usage": 0.0,
                    "ml.p5.48xlarge for spot training job usage": 0.0,
                    "ml.p5.48xlarge for endpoint usage": 9.0}  # fmt: skip
        asked = {"ServiceCode": "sagemaker"}
        for name, quotas in (
            ("list_aws_default_service_quotas", defaults), ("list_service_quotas", applied)
        ):  # fmt: skip
            told = [{"QuotaName": quota, "Value": value} for quota, value in quotas.items()]
            self.stubs["service-quotas"].add_response(name, {"Quotas": told}, asked)
        offered = [
            {"InstanceType": name, "LocationType": "availability-zone", "Location": zone}
            for name, places in zones.items()
            for zone in places
        ]
        self.stubs["ec2"].add_response(
            "describe_instance_type_offerings",
            {"InstanceTypeOfferings": offered},
            {"LocationType": "availability-zone"},
        )

    def client(self, name: str) -> Any:
        """Return the client of a service."""
        return self.clients[name]


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")


def read(applied: dict[str, float], zones: dict[str, list[str]]) -> AccountLimits:
    account = Account(applied, zones)
    for stub in account.stubs.values():
        stub.activate()
    found = limits(account)
    for stub in account.stubs.values():
        stub.assert_no_pending_responses()
    return found


BOTH = {"p4d.24xlarge": ["us-east-1b", "us-east-1a"], "p5.48xlarge": ["us-east-1a"]}


def planned(folder: Path, spot: str, found: AccountLimits) -> None:
    path = folder / "request.yaml"
    path.write_text(REQUEST.replace("SPOT", spot))
    planning.plan(path, None, limits=found)


def test_a_plan_stays_within_the_quotas_and_names_the_zones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = read({"ml.p4d.24xlarge for training job usage": 2.0}, BOTH)
    planned(tmp_path, "", found)
    said = capsys.readouterr().out
    assert "take        2 x ml.p4d.24xlarge" in said
    assert (
        "account     us-east-1 has a quota of 2 for ml.p4d.24xlarge (2 taken), "
        "offered in us-east-1a, us-east-1b" in said
    )
    assert "account     none of ml.p5.48xlarge: ask for a quota" in said


def test_spot_has_quotas_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = read({"ml.p4d.24xlarge for training job usage": 2.0}, BOTH)
    planned(tmp_path, ", spot: true", found)
    said = capsys.readouterr().out
    assert "quota of 1 for ml.p4d.24xlarge" in said


def test_without_any_quota_there_is_no_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        planned(tmp_path, "", read({}, BOTH))
    assert "quotas leave no instance" in capsys.readouterr().out


def test_a_type_that_no_zone_offers_is_not_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quotas = {f"ml.{name} for training job usage": 2.0 for name in BOTH}
    planned(tmp_path, "", read(quotas, {"p4d.24xlarge": ["us-east-1a"]}))
    said = capsys.readouterr().out
    assert "take        2 x ml.p4d.24xlarge" in said
    assert "none of ml.p5.48xlarge" in said


def test_an_account_that_may_not_read_is_told() -> None:
    account = Account({}, {})
    client = account.clients["service-quotas"]
    stub = Stubber(client)
    stub.add_client_error("list_aws_default_service_quotas", "AccessDeniedException", "no")
    stub.activate()
    with pytest.raises(DeployError, match="the quotas of us-east-1 can't be read"):
        limits(account)
