"""``doctor``: findings for people and for programs, with an account and without."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestration.local import EmbeddedAws
from tests.cli.conftest import ROOT, Command

JOBS = """\
name: sick
parameters: {bucket: {}, role: {}, data: {}}
workspace: {join: ["s3://", {parameter: bucket}, /sick]}
stages:
  train:
    kind: training_job
    image: 123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1
    entrypoint: [python3, train.py]
    channels: {training: {parameter: data}}
    cluster: {instance_type: ml.g5.xlarge, instance_count: 4}
"""
VALUES = (
    *("-p", "bucket=nobodys-bucket"),
    *("-p", "data=s3://nobodys-data/set"),
    *("-p", "role=arn:aws:iam::123456789012:role/nobody"),
)


def sick(folder: Path, text: str = JOBS) -> Path:
    path = folder / "sick.yaml"
    path.write_text(text)
    return path


def test_a_valid_pipeline_is_healthy_without_an_account(
    orchestrate: Command, tmp_path: Path
) -> None:
    path = sick(tmp_path)
    said = orchestrate("doctor", path)
    assert (said.status, said.err) == (0, "")
    assert said.out == f"{path}: 0 that fail a run, 0 that may, 0 not checked\n"


def test_what_validation_refuses_is_told_with_its_place(
    orchestrate: Command, tmp_path: Path
) -> None:
    path = sick(tmp_path, JOBS.replace("{training: {parameter: data}}", "{training: {ref: a.b}}"))
    said = orchestrate("doctor", path, "--json")
    assert said.status == 1
    [finding] = said.document["findings"]
    assert (finding["check"], finding["severity"]) == ("validation", "fails")
    assert finding["where"] == "stages.train.channels.training.uri"
    assert said.document["account"] is None


def test_everything_that_the_account_lacks_is_told_at_once(
    orchestrate: Command, account: EmbeddedAws, tmp_path: Path
) -> None:
    account.provide(quotas={"ml.g5.xlarge for training job usage": 2})
    said = orchestrate("doctor", sick(tmp_path), "--account", *VALUES)
    assert said.status == 1
    assert said.err == "account 123456789012, region us-east-1\n"
    for line in (
        "fails: parameters.bucket: bucket nobodys-bucket does not exist (buckets)",
        "fails: stages.train.channels.training.uri: bucket nobodys-data does not exist (buckets)",
        "fails: parameters.role: role arn:aws:iam::123456789012:role/nobody does not exist (roles)",
        "  when: train.job calls sagemaker:CreateTrainingJob",
    ):
        assert line in said.out.splitlines()
    assert "4 x ml.g5.xlarge asked for, and the quota is 2" in said.out


def test_a_finding_is_told_as_shown(
    orchestrate: Command, account: EmbeddedAws, tmp_path: Path
) -> None:
    shown = (ROOT / "docs/doctor.md").read_text().partition("account 1234")[2].partition("```")[0]
    machines = "instance_type: ml.p4d.24xlarge, instance_count: 2"
    text = JOBS.replace("instance_type: ml.g5.xlarge, instance_count: 4", machines)
    account.provide(quotas={"ml.p4d.24xlarge for training job usage": 0})
    said = orchestrate("doctor", sick(tmp_path, text), "--account", *VALUES)
    for line in shown.replace("\n…", "").splitlines()[1:]:
        assert line in said.out.splitlines()


def test_the_account_is_only_read(
    orchestrate: Command, account: EmbeddedAws, tmp_path: Path
) -> None:
    before = len(account.calls())
    orchestrate("doctor", sick(tmp_path), "--account", *VALUES)
    made = [call.operation for call in account.calls()[before:]]
    assert {"HeadBucket", "GetRole", "ListServiceQuotas"} <= set(made)
    reading = re.compile(r"(BatchGet|Describe|Get|Head|List|Simulate)\w+")
    assert [name for name in made if not reading.fullmatch(name)] == []


def test_a_value_that_is_missing_is_said_to_be(
    orchestrate: Command, account: EmbeddedAws, tmp_path: Path
) -> None:
    said = orchestrate("doctor", sick(tmp_path), "--account", *VALUES[:2], "--json")
    missing = [each for each in said.document["findings"] if each["check"] == "parameters"]
    assert [(each["severity"], each["where"]) for each in missing] == [
        ("not checked", "parameters.data"),
        ("not checked", "parameters.role"),
    ]
    assert missing[0]["mend"] == "give the value that runs will have: -p data=…"


def test_a_pipeline_that_is_not_there_is_a_usage_error(
    orchestrate: Command, tmp_path: Path
) -> None:
    assert orchestrate("doctor", tmp_path / "none.yaml").status == 2
    assert orchestrate("doctor", sick(tmp_path), "-p", "unknown=1").status == 2


@pytest.mark.parametrize("option", ["--role", "--connection", "--url"])
def test_what_the_account_is_needed_for_is_not_passed_over(
    orchestrate: Command, tmp_path: Path, option: str
) -> None:
    said = orchestrate("doctor", sick(tmp_path), option, "own")
    assert (said.status, "is looked up with --account only" in said.err) == (2, True)
