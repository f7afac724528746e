"""Runs on the embedded AWS: the same report whatever orchestrates, and failures that are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration import LocalError, Pipeline
from orchestration.errors import DeployError
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, Progress, run
from tests.cli.conftest import ROOT, Command

BACKENDS: tuple[On, ...] = ("direct", "step-functions", "airflow")
REFUSED = Fault(
    service="s3", operation="CopyObject", error_code="AccessDenied", message="not yours", status=403
)


def parameters(name: str) -> dict[str, str]:
    return {"bucket": f"workspace-{name}", "data": f"s3://data-{name}/set"}


@pytest.mark.parametrize("on", BACKENDS)
def test_a_run_is_reported_by_stage(
    aws: EmbeddedAws, airflow: LocalAirflow, staging: Path, data: Path, on: On
) -> None:
    changes: list[Progress] = []
    report = run(
        Pipeline.load(staging),
        on=on,
        parameters=parameters(on),
        aws=aws,
        airflow=airflow,
        uploads={f"s3://data-{on}/set": data},
        run_id=f"good-{on}",
        on_progress=changes.append,
    )
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    [stage] = report.stages
    assert (stage.name, stage.state, stage.job_names) == ("staging", "succeeded", ())
    assert stage.metrics == {"object_count": 2, "total_bytes": 30}
    assert stage.duration_s is not None
    assert 0 < stage.duration_s <= report.duration_s
    assert report.outputs is not None
    outputs: Any = report.outputs["staging"]
    assert outputs["location"].startswith(f"s3://workspace-{on}/copying/")
    journal = {"PutObject"} if on == "direct" else set()
    copying = {"ListObjectsV2", "CopyObject", "HeadObject"}
    assert {call.operation for call in report.calls} == copying | journal
    # Copying is over when its last object is; what came before the run is not among its calls.
    order = [change.step for change in changes if change.state == "succeeded"]
    steps = ["staging.list", "staging.copy", "staging.verify"]
    # On Airflow the steps are one task.
    assert [step for step in order if step in steps] == (steps if on != "airflow" else [])
    assert on != "airflow" or order == ["staging"]
    stored = aws.state()["s3"][f"workspace-{on}"]
    assert {item["Size"] for key, item in stored.items() if "/staging/" in key} == {10, 20}


@pytest.mark.parametrize("on", BACKENDS)
def test_a_failed_run_is_reported_and_not_raised(
    aws: EmbeddedAws, airflow: LocalAirflow, staging: Path, data: Path, on: On
) -> None:
    aws.inject(REFUSED)
    name = f"bad-{on}"
    report = run(
        Pipeline.load(staging),
        on=on,
        parameters=parameters(name),
        aws=aws,
        airflow=airflow,
        uploads={f"s3://data-{name}/set/": data},
        run_id=name,
    )
    assert report.state == "failed"
    assert report.outputs is None
    assert report.cause is not None
    assert "not yours" in report.cause
    assert [stage.state for stage in report.stages] == ["failed"]
    assert report.to_json()["error"] == report.error


def test_mistakes_in_parameters_come_before_anything_runs(aws: EmbeddedAws, staging: Path) -> None:
    pipeline = Pipeline.load(staging)
    with pytest.raises(DeployError, match="did you mean 'bucket'"):
        run(pipeline, on="airflow", parameters={"buckt": "workspace"}, aws=aws)
    with pytest.raises(LocalError, match="has no value for data"):
        run(pipeline, on="airflow", parameters={"bucket": "workspace"}, aws=aws)


@pytest.mark.parametrize("on", [(), ("--on", "step-functions")], ids=["directly", "states"])
def test_the_command_prints_what_the_run_came_to(
    orchestrate: Command, staging: Path, data: Path, on: tuple[str, ...]
) -> None:
    said = orchestrate(
        *("run", staging, *on, "--time-scale", "0.005"),
        *("-p", "bucket=workspace", "-p", "data=s3://dataset/set"),
        *("--upload", f"{data}=s3://dataset/set"),
    )
    assert said.status == 0
    assert "object_count = 2" in said.out
    assert "staging.copy" in said.err
    assert "\x1b" not in said.out + said.err


def test_the_command_as_json_fails_with_the_run(
    orchestrate: Command, staging: Path, data: Path
) -> None:
    said = orchestrate(
        *("run", staging, "--on", "step-functions", "--json", "--time-scale", "0.005"),
        *("-p", "bucket=workspace", "-p", "data=s3://dataset/empty"),
        *("--upload", f"{data}=s3://dataset/set"),
    )
    assert said.status == 1
    assert said.document["state"] == "failed"
    assert said.document["error"] == "SourceNotUsable"
    cause = (
        "stage staging expected 1 to 500 objects of at most 5 GiB each below s3://dataset/empty "
    )
    assert said.document["cause"].startswith(cause)
    assert [stage["state"] for stage in said.document["stages"]] == ["failed"]
    assert "failed on step-functions: SourceNotUsable" in said.err
    assert said.err.endswith("\nwhat to do: orchestrate explain SourceNotUsable\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("limit=three", "limit: expected a number, got 'three'"),
        ("limit=nan", "limit: expected a number, got 'nan'"),
        ("strict=perhaps", "strict: expected a boolean, got 'perhaps'"),
        ("dat=s3://b/d", "unknown parameter 'dat'; did you mean 'data'?"),
        ("data", "'data' is not NAME=VALUE"),
        ("bucket=again", "bucket is given twice"),
    ],
)
def test_parameters_are_read_in_their_types(
    orchestrate: Command, staging: Path, given: str, message: str
) -> None:
    said = orchestrate("run", staging, "--on", "airflow", "-p", "bucket=workspace", "-p", given)
    assert said.status == 2
    assert message in said.err
    assert "data is required (S3 URI of the data)" in said.err or given == "data"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nowhere=s3://b/d", "there is no file or folder nowhere"),
        ("copying.yaml", "is not LOCAL=s3://bucket/key"),
        ("copying.yaml=s3://", "is not LOCAL=s3://bucket/key"),
        ("copying.yaml=s3:///d", "is not LOCAL=s3://bucket/key"),
    ],
)
def test_uploads_are_checked_first(
    orchestrate: Command,
    staging: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: str,
    message: str,
) -> None:
    monkeypatch.chdir(staging.parent)
    said = orchestrate(
        *("run", staging, "--on", "airflow", "-p", "bucket=b", "-p", "data=s3://b/d"),
        *("--upload", given),
    )
    assert said.status == 2
    assert message in said.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--aws", "--on", "airflow"), "in your own account a pipeline is run directly"),
        (("--aws", "--upload", "a=s3://b/d"), "is for the embedded AWS"),
        (("--profile", "research"), "is for runs in your own account: give --aws too"),
        (("--region", "us-east-1"), "is for runs in your own account: give --aws too"),
    ],
)
def test_what_needs_an_account_or_the_embedded_one_is_said(
    orchestrate: Command, staging: Path, options: tuple[str, ...], message: str
) -> None:
    said = orchestrate("run", staging, "-p", "bucket=b", "-p", "data=s3://b/d", *options)
    assert said.status == 2
    assert message in " ".join(said.err.split())


def test_a_run_in_an_account_needs_its_role(orchestrate: Command) -> None:
    digits = ROOT / "dags/digits.yaml"
    said = orchestrate("run", digits, "--aws", "-p", "bucket=b", "-p", "data=s3://b/d")
    assert said.status == 2
    assert "role is required" in said.err


def test_the_demo_says_where_it_can_run(
    orchestrate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = orchestrate("demo")
    assert said.status == 1
    assert "the demo needs a checkout of the repository" in said.err


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_without_end_is_refused(orchestrate: Command, staging: Path, digits: int) -> None:
    said = orchestrate("run", staging, "-p", f"limit={'9' * digits}", "-p", "bucket=b")
    assert said.status == 2
    assert "limit: expected a number, got '999" in said.err
    assert len(said.err) < 1000
