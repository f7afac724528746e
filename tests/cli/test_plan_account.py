"""``plan --account``: quotas, offerings and spot jobs, as AWS's own answers at the wire."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
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
    """A session whose clients answer what AWS would, in its order."""

    region_name = "us-east-1"

    def __init__(
        self,
        applied: dict[str, float],
        zones: dict[str, list[str]],
        jobs: Sequence[dict[str, Any]] = (),
    ) -> None:
        self.clients = {name: boto3.client(name, region_name=self.region_name)
                        for name in ("service-quotas", "ec2", "sagemaker")}  # fmt: skip
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
        self.add_jobs(jobs)

    def add_jobs(self, jobs: Sequence[dict[str, Any]]) -> None:
        """Answer with a list of jobs, and the description of each."""
        members = ("TrainingJobName", "TrainingJobArn", "CreationTime", "TrainingJobStatus")
        stub = self.stubs["sagemaker"]
        stub.add_response(
            "list_training_jobs",
            {"TrainingJobSummaries": [{key: job[key] for key in members} for job in jobs]},
            {"StatusEquals": "Completed", "SortBy": "CreationTime", "SortOrder": "Descending",
             "MaxResults": 50},
        )  # fmt: skip
        for job in jobs:
            stub.add_response(
                "describe_training_job", job, {"TrainingJobName": job["TrainingJobName"]}
            )

    def client(self, name: str) -> Any:
        """Return the client of a service."""
        return self.clients[name]


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")


def job(day: int, *, saved: int, spot: bool = True, **resources: Any) -> dict[str, Any]:
    """Return the description of a training job of 1,000 seconds."""
    name = f"job-{day}"
    return {
        "TrainingJobName": name,
        "TrainingJobArn": f"arn:aws:sagemaker:us-east-1:123456789012:training-job/{name}",
        "TrainingJobStatus": "Completed",
        "SecondaryStatus": "Completed",
        "ModelArtifacts": {"S3ModelArtifacts": "s3://none/model.tar.gz"},
        "AlgorithmSpecification": {"TrainingInputMode": "File"},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "ResourceConfig": {"VolumeSizeInGB": 1, **(resources or {"InstanceType": P4})},
        "CreationTime": datetime(2026, 11, day, tzinfo=UTC),
        "EnableManagedSpotTraining": spot,
        "BillableTimeInSeconds": 1000 - 10 * saved,
        "TrainingTimeInSeconds": 1000,
    }


P4 = "ml.p4d.24xlarge"


def read(
    applied: dict[str, float], zones: dict[str, list[str]], *jobs: dict[str, Any]
) -> AccountLimits:
    account = Account(applied, zones, jobs)
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


def test_past_spot_jobs_say_what_a_plan_on_spot_pays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed: dict[str, Any] = {
        "InstanceGroups": [{"InstanceGroupName": "a", "InstanceType": P4, "InstanceCount": 1}]
    }
    found = read(
        {}, BOTH, job(21, saved=68), job(20, saved=0, spot=False), job(14, saved=10, **mixed),
        job(9, saved=70), job(2, saved=72),
    )  # fmt: skip
    planned(tmp_path, ", spot: true, spot_saving: 0.2", found)
    said = capsys.readouterr().out
    # Shares of 0.32, 0.30 and 0.28; of their logarithms the deviation is 0.0668, t is 1.886.
    assert "the cost assumes that spot saves 70% (65% to 74%), as 3 jobs of 2026-11-02 to " in said
    line = next(line for line in said.splitlines() if "spot saved" in line)
    assert line == (
        "account     spot saved 70% (65% to 74%) on ml.p4d.24xlarge: 3 jobs of 2026-11-02 to "
        "2026-11-21 (job-21 68%, job-9 70%, job-2 72%)"
    )


def test_too_few_spot_jobs_are_shown_and_the_stated_saving_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = read({}, BOTH, job(9, saved=70), job(2, saved=72))
    planned(tmp_path, ", spot: true, spot_saving: 0.2", found)
    said = capsys.readouterr().out
    assert "the cost assumes that spot saves 20%;" in said
    assert "spot saved 71% on ml.p4d.24xlarge: 2 jobs of 2026-11-02 to 2026-11-09" in said
    assert "a plan counts it from 3 jobs on" in said


def test_a_plan_on_demand_pays_in_full_whatever_spot_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quotas = {"ml.p4d.24xlarge for training job usage": 1.0}
    days = (job(day, saved=70) for day in (4, 3, 2))
    bills = []
    for found in (read(quotas, BOTH), read(quotas, BOTH, *days)):
        planned(tmp_path, "", found)
        said = capsys.readouterr().out
        bills += [line for line in said.splitlines() if line.startswith("cost")]
    assert len(bills) == 2
    assert bills[0] == bills[1]


def test_an_account_that_hides_its_jobs_still_has_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    account = Account({}, BOTH)
    stub = Stubber(account.clients["sagemaker"])
    account.stubs["sagemaker"] = stub
    stub.add_client_error("list_training_jobs", "AccessDeniedException", "no")
    for each in account.stubs.values():
        each.activate()
    planned(tmp_path, ", spot: true", limits(account))
    said = capsys.readouterr().out
    assert "take        1 x ml.p4d.24xlarge" in said
    assert "what spot saved can't be read (sagemaker:ListTrainingJobs: " in said
