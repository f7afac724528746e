"""``cost``: estimates and budgets, and what a run's jobs were billed on the embedded AWS."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration import Pipeline
from orchestration.catalog import prices
from orchestration.expressions.evaluate import run_token
from orchestration.local import EmbeddedAws
from orchestration.local.run import run
from tests.cli.conftest import Command

PIPELINE = """\
name: costly
parameters: {bucket: {}, machine: {default: ml.m5.xlarge}}
region: us-west-2
workspace: {join: ["s3://", {parameter: bucket}, /costly]}
schedule: {cron: 0 6 * * *, timezone: UTC, parameters: {bucket: b}}
stages:
  train:
    kind: training_job
    image: 123456789012.dkr.ecr.us-west-2.amazonaws.com/training:1
    cluster: {instance_type: {parameter: machine}, instance_count: 2}
    max_runtime_s: 3600
    local: {command: [python3, train.py], directory: .}
"""
HOUR = prices()["ml.m5.xlarge"].usd_per_hour


@pytest.fixture
def costly(tmp_path: Path) -> Path:
    path = tmp_path / "costly.yaml"
    path.write_text(PIPELINE)
    (tmp_path / "train.py").write_text("print('trained')\n")
    return path


def test_lines_name_price_day_and_region(orchestrate: Command, costly: Path) -> None:
    said = orchestrate("cost", costly, "--assume", "train.hours=0.5")
    assert said.status == 0
    [row] = [line for line in said.out.splitlines() if "2 x ml.m5.xlarge" in line]
    for text in ("train", f"${HOUR}/h", "us-west-2 2026-09-01", f"${HOUR:.2f}"):
        assert text in row
    assert "a month with 30.4 runs" in said.out
    assert "unknown" not in said.out


def test_a_budget_that_a_run_may_exceed_fails(orchestrate: Command, costly: Path) -> None:
    assert orchestrate("cost", costly, "--budget", "1").status == 0
    over = orchestrate("cost", costly, "--budget", "0.4", "--json")
    assert over.status == 1
    assert over.document["over_budget"] == [over.err.removeprefix("error: ").strip()]
    assert "a run may cost $0.5" in over.err
    monthly = orchestrate("cost", costly, "--monthly-budget", "14")
    assert monthly.status == 1
    assert "a month may cost" in monthly.err


def test_a_budget_holds_for_nothing_unknown(orchestrate: Command, costly: Path) -> None:
    said = orchestrate("cost", costly, "-p", "machine=ml.r5.xlarge", "--budget", "1000")
    assert said.status == 1
    assert "no price is known for ml.r5.xlarge" in said.out
    assert "no bound" in said.err


def test_a_wrong_assumption_is_refused(orchestrate: Command, costly: Path) -> None:
    said = orchestrate("cost", costly, "--assume", "trian.hours=1")
    assert said.status == 1
    assert "did you mean 'train'?" in said.err


def test_a_run_is_told_what_its_jobs_were_billed(
    account: EmbeddedAws, orchestrate: Command, costly: Path
) -> None:
    costly.write_text(PIPELINE.replace("us-west-2", account.region))
    assert orchestrate("cost", costly, "--run-id", "first", "--region", account.region).status == 1
    report = run(
        Pipeline.load(costly), on="direct", parameters={"bucket": "costs"}, aws=account,
        run_id="first",
    )  # fmt: skip
    assert report.state == "succeeded", report.cause
    [job] = report.stages[0].job_names
    described = account.client("sagemaker").describe_training_job(TrainingJobName=job)
    hours = described["BillableTimeInSeconds"] / 3600
    where = ("--region", account.region, "--json")
    for name in ("first", run_token("costly/first")):
        told = orchestrate("cost", costly, "--run-id", name, *where).document
        assert told["usd"] == pytest.approx(2 * hours * HOUR)
    found = orchestrate("cost", costly, "--from-runs", *where).document
    [line] = [line for line in found["lines"] if line["what"].startswith("2 x")]
    assert line["quantity"]["expected"] == pytest.approx(2 * hours, abs=1e-3)
    assert any("the one job before" in note for note in line["notes"])
