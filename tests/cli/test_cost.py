"""``cost``: estimates and budgets, and what a run's jobs were billed on the embedded AWS."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration import Pipeline
from orchestration.catalog import prices
from orchestration.cli.commands.deployed.wording import dollars
from orchestration.direct.progress import StepRun
from orchestration.direct.stages import RunState
from orchestration.expressions.evaluate import run_token
from orchestration.local import EmbeddedAws
from orchestration.local.run import run
from orchestration.pricing import Assumptions, estimate
from orchestration.runs import Jobs, Logs, Snapshot, Watch
from orchestration.runs.progress import Progress
from tests.cli.conftest import ROOT, Command

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


RESTING = """\
name: resting
workspace: s3://resting-workspace/x
stages: {rest: {kind: pause, duration_s: 1}}
"""


def test_a_run_without_jobs_is_told_the_rest(
    account: EmbeddedAws, orchestrate: Command, tmp_path: Path
) -> None:
    path = tmp_path / "resting.yaml"
    path.write_text(RESTING)
    report = run(Pipeline.load(path), on="step-functions", parameters={}, aws=account, run_id="one")
    assert report.state == "succeeded", report.cause
    command = ("cost", path, "--run-id", "one", "--region", account.region)
    told = orchestrate(*command, "--json").document
    [line] = told["lines"]
    assert (line["stage"], line["what"]) == ("(run)", "Step Functions transitions")
    assert line["quantity"]["expected"] == pytest.approx(0.005)
    assert told["usd"] == line["expected_usd"] > 0
    assert "without transfers, requests and logs" in orchestrate(*command).out


SEARCH = """\
name: swept
parameters: {bucket: {}}
workspace: {join: ["s3://", {parameter: bucket}, /swept]}
stages:
  tune:
    kind: training_job
    image: training:1
    cluster: {instance_type: ml.m5.large}
    local: {command: [python3, "-c", ""], directory: .}
  tune_more:
    kind: tuning_job
    after: [tune]
    image: training:1
    cluster: {instance_type: ml.m5.xlarge}
    objective: {metric: score, direction: max, regex: "score=([0-9.]+)"}
    ranges: {rate: {categorical: [0.1, 0.5]}}
    search: grid
    limits: {parallel: 2}
    local: {command: [python3, "-c", "print('score=0.5')"], directory: .}
"""


def test_a_search_costs_what_each_of_its_training_jobs_does(
    account: EmbeddedAws, orchestrate: Command, tmp_path: Path
) -> None:
    path = tmp_path / "swept.yaml"
    path.write_text(SEARCH)
    report = run(
        Pipeline.load(path), on="direct", parameters={"bucket": "costs"}, aws=account, run_id="one"
    )
    assert report.state == "succeeded", report.cause
    sagemaker = account.client("sagemaker")
    [search] = report.stages[1].job_names
    listed = sagemaker.list_training_jobs_for_hyper_parameter_tuning_job(
        HyperParameterTuningJobName=search
    )["TrainingJobSummaries"]
    # The name of the first stage's jobs begins those of the search's, too.
    names = [*report.stages[0].job_names, *(each["TrainingJobName"] for each in listed)]
    assert len(names) == 3
    jobs = [sagemaker.describe_training_job(TrainingJobName=name) for name in names]
    usd = sum(
        job["BillableTimeInSeconds"]
        / 3600
        * prices()[job["ResourceConfig"]["InstanceType"]].usd_per_hour
        for job in jobs
    )
    where = ("--region", account.region, "--json")
    told = orchestrate("cost", path, "--run-id", "one", *where).document
    assert told["usd"] == pytest.approx(usd)
    assert [line["stage"] for line in told["lines"]] == ["tune", "tune_more"]
    shown = orchestrate("cost", path, "--from-runs", *where).document["lines"]
    [line] = [each for each in shown if each["what"] == "1 x ml.m5.xlarge"]
    assert any("mean of 2 jobs" in note for note in line["notes"])

    class Ended:
        name, token = "swept/one", run_token("swept/one")

        def look(self) -> Progress:
            return Progress(state="succeeded", started=report.started, ended=report.ended)

    found = Jobs(Pipeline.load(path), sagemaker)
    watched = Watch(Ended(), found, Logs(account.client("logs")), region=account.region).look()
    [job] = watched.stages[1].jobs
    assert (job.phase, job.metrics) == ("Completed: 2 jobs ended, 0 running", {"score": 0.5})
    assert watched.usd == pytest.approx(usd)
    assert not watched.unpriced


BEGAN = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
AN_HOUR = datetime.timedelta(hours=1)


def watched_for_a_month(
    account: EmbeddedAws, pipeline: Pipeline, state: RunState, steps: tuple[StepRun, ...]
) -> Snapshot:
    class Standing:
        name, token = f"{pipeline.name}/standing", run_token(f"{pipeline.name}/standing")

        def look(self) -> Progress:
            ended = BEGAN + 730 * AN_HOUR
            return Progress(state=state, started=BEGAN, ended=ended, steps=steps)

    jobs = Jobs(pipeline, account.client("sagemaker"))
    return Watch(Standing(), jobs, Logs(account.client("logs")), region="us-east-1").look()


@pytest.mark.parametrize("step", ["deploy", "deploy.settled"])
def test_a_watched_run_counts_the_endpoint_that_outlives_it(
    account: EmbeddedAws, step: str
) -> None:
    """The step is a task on Airflow, and a state on Step Functions."""
    digits = Pipeline.load(ROOT / "dags/digits.yaml")
    deployed = StepRun(step, "succeeded", BEGAN, BEGAN + 630 * AN_HOUR)
    ended = watched_for_a_month(account, digits, "succeeded", (deployed,))
    assert ended.usd == pytest.approx(100 * prices()["ml.c5.xlarge"].usd_per_hour)
    assert dollars(ended).endswith(" for jobs and endpoint that runs on, 1 x ml.c5.xlarge")
    failed = replace(deployed, state="failed")
    doubtful = watched_for_a_month(account, digits, "failed", (failed,))
    assert (doubtful.usd, doubtful.besides) == (0.0, ())
    assert doubtful.unpriced == ("the endpoint of deploy, if it stands",)
    asked = StepRun("deploy.invoke", "failed", deployed.ended, deployed.ended)
    unanswered = watched_for_a_month(account, digits, "failed", (deployed, asked))
    told = (ended.usd, ()) if step == "deploy.settled" else (0.0, doubtful.unpriced)
    assert (unanswered.usd, unanswered.unpriced) == told
    going = replace(deployed, state="running", ended=None)
    assert watched_for_a_month(account, digits, "running", (going,)).usd == 0.0


def test_a_watched_run_counts_its_file_system_until_it_is_deleted(account: EmbeddedAws) -> None:
    fsx = Pipeline.load(ROOT / "dags/llm_fsx.yaml")

    def usd(*steps: StepRun) -> Snapshot:
        return watched_for_a_month(account, fsx, "failed", steps)

    created = StepRun("staging.create", "succeeded", BEGAN, BEGAN + AN_HOUR)
    deleted = StepRun("staging.delete", "succeeded", BEGAN + 72 * AN_HOUR, BEGAN + 73 * AN_HOUR)
    assert (usd().usd, usd().besides) == (0.0, ())
    refused = usd(replace(created, state="failed"))
    assert (refused.usd, refused.besides) == (0.0, ())
    month, part = usd(created), usd(created, deleted)
    assert month.besides == ("FSx for Lustre, 1,200 GiB",)
    assert dollars(month).endswith(" for jobs and FSx for Lustre, 1,200 GiB")
    [line] = [
        line
        for line in estimate(fsx.lower(), Assumptions(), region="us-east-1", parameters={}).lines
        if line.what == month.besides[0]
    ]
    assert line.rate is not None
    assert month.usd == pytest.approx(1200 * line.rate.usd)
    assert part.usd == pytest.approx(month.usd / 10)
