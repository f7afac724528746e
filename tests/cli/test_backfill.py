"""``backfill`` starts the runs that the schedule would have started, and each of them once."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.deploy import step_functions
from orchestration.deploy.executions.backfilling import backfill, fires_between
from orchestration.errors import StartError
from orchestration.local import EmbeddedAws
from tests.cli.conftest import Command

JANUARY = ("--from", "2026-01-01", "--to", "2026-01-04")
WORDS = """\
name: NAME
parameters: {words: {}, until: {}, more: {default: none}}
workspace: s3://workspace/NAME
overlap: allow
schedule: {cron: 0 6 * * *, parameters: {words: nightly}, time_parameter: until}
stages:
  rest: {kind: pause, duration_s: 1}
  look: {kind: aws_call, service: sns, operation: ListTopics, request: {}, after: [rest]}
"""
RUNS = [f"2026-01-0{day}T06:00:00Z" for day in (1, 2, 3)]


@pytest.fixture
def nightly(tmp_path: Path) -> Callable[[str], Path]:
    def written(name: str) -> Path:
        path = tmp_path / f"{name}.yaml"
        path.write_text(WORDS.replace("NAME", name))
        return path

    return written


def inputs(aws: EmbeddedAws, arns: list[str]) -> list[Any]:
    states = aws.client("stepfunctions")
    return [json.loads(states.describe_execution(executionArn=arn)["input"]) for arn in arns]


YEARLY = "cron: 0 6 1 1 *, start: 2024-06-01, catchup: true"


@pytest.mark.slow
def test_a_deployment_shows_and_starts_what_its_schedule_has_missed(
    account: EmbeddedAws, orchestrate: Command, nightly: Callable[[str], Path]
) -> None:
    path = nightly("yearly")
    path.write_text(path.read_text().replace("cron: 0 6 * * *", YEARLY))
    assert orchestrate("lock", path).status == 0
    years = range(2025, datetime.now(tz=UTC).year + 1)
    times = [f"{year}-01-01T06:00:00+00:00" for year in years]
    runs = f"runs for {len(years)} times of yearly that were missed"
    deploy = ("deploy", "step-functions", path)
    shown = orchestrate(*deploy, "--dry-run")
    assert f"would create {runs}\n    + yearly/2025-01-01T06:00:00Z" in shown.out
    assert "runs for" not in orchestrate(*deploy, "--dry-run", "--no-catch-up").out
    made = orchestrate(*deploy, "--yes", "--json")
    assert f"did create {runs}" in made.err
    assert made.document["missed"] == times
    assert orchestrate(*deploy, "--yes", "--json").document["missed"] == []
    assert orchestrate("backfill", path, "--yes", "--json").document["started"] == []


def test_a_deployment_to_airflow_tells_what_airflow_starts_by_itself(
    orchestrate: Command, nightly: Callable[[str], Path], tmp_path: Path
) -> None:
    path, folder = nightly("yearly"), tmp_path / "dags"
    path.write_text(path.read_text().replace("cron: 0 6 * * *", YEARLY))
    folder.mkdir()
    assert orchestrate("lock", path).status == 0
    deploy = ("deploy", "airflow", path, "--to", folder, "--yes")
    number = datetime.now(tz=UTC).year - 2024
    told = f"times since 2024-06-01T00:00Z that are over: {number}; with schedule.catchup, Airflow"
    assert told in orchestrate(*deploy).err
    assert "catchup" not in orchestrate(*deploy).err
    refused = orchestrate(*deploy, "--no-catch-up")
    assert (refused.status, "is for step-functions only" in refused.err) == (2, True)


@pytest.mark.slow
def test_a_schedule_without_a_start_needs_a_first_time(
    orchestrate: Command, nightly: Callable[[str], Path]
) -> None:
    for place in ((), ("--on", "airflow")):
        said = orchestrate("backfill", nightly("unbounded"), *place)
        assert (said.status, "the schedule has no start" in said.err) == (2, True)


ELSEWHERE = "arn:aws:iam::999999999999:role/Elsewhere"
MODEL = """\
  model:
    kind: aws_call
    service: sagemaker
    operation: CreateModel
    request: {ModelName: m, ExecutionRoleArn: {parameter: words}}
    exists: {code: ValidationException, message: existing}
"""


@pytest.mark.slow
def test_a_role_of_another_account_is_refused_before_anybody_is_asked(
    account: EmbeddedAws, orchestrate: Command, nightly: Callable[[str], Path]
) -> None:
    path = nightly("passed")
    own = ELSEWHERE.replace("9" * 12, "123456789012")
    path.write_text(f"{path.read_text()}{MODEL}".replace("nightly", own))
    step_functions(
        Pipeline.load(path), session=account, parameters={"words": own}, sleep=lambda _: None
    )
    command = ("backfill", path, *JANUARY, "--dry-run")
    assert orchestrate(*command).status == 0
    refused = orchestrate(*command, "-p", f"words={ELSEWHERE}")
    assert (refused.status, f"role {ELSEWHERE} is of account 999" in refused.err) == (1, True)


@pytest.mark.slow
def test_each_time_is_run_once_with_what_the_schedule_gives(
    account: EmbeddedAws, orchestrate: Command, nightly: Callable[[str], Path]
) -> None:
    path = nightly("filled")
    early = orchestrate("backfill", path, *JANUARY)
    assert (early.status, "is not deployed to 123456789012" in early.err) == (1, True)
    step_functions(Pipeline.load(path), session=account, sleep=lambda _: None)
    [machine] = [
        each["stateMachineArn"]
        for each in account.client("stepfunctions").list_state_machines()["stateMachines"]
        if each["name"] == "filled"
    ]
    # The schedule itself has started the second, under a name of its own.
    account.client("stepfunctions").start_execution(
        stateMachineArn=machine,
        input=json.dumps(
            {"words": "nightly", "until": RUNS[1], "orchestration:run": f"filled/{RUNS[1]}"}
        ),
    )
    shown = orchestrate("backfill", path, *JANUARY, "--dry-run")
    assert [line[:13] for line in shown.out.splitlines()] == [
        "would start f",
        "is there     ",
        "would start f",
    ]
    assert "123456789012, region us-east-1" in shown.err
    assert orchestrate("backfill", path, *JANUARY).status == 2  # Nobody is there to say yes.
    done = orchestrate("backfill", path, *JANUARY, "--at-most", "2", "--yes", "--json").document
    assert [each["run"] for each in done["started"]] == [f"filled/{RUNS[0]}", f"filled/{RUNS[2]}"]
    assert inputs(account, [each["execution_arn"] for each in done["started"]]) == [
        {"words": "nightly", "until": RUNS[0], "orchestration:run": f"filled/{RUNS[0]}"},
        {"words": "nightly", "until": RUNS[2], "orchestration:run": f"filled/{RUNS[2]}"},
    ]
    again = orchestrate("backfill", path, *JANUARY, "--yes")
    assert (again.status, again.err.splitlines()[-1]) == (0, "nothing to start")


@pytest.mark.slow
def test_no_more_run_side_by_side_than_may(
    account: EmbeddedAws, nightly: Callable[[str], Path]
) -> None:
    path = nightly("queued")
    path.write_text(path.read_text().replace("duration_s: 1", "duration_s: 2000000"))
    pipeline = Pipeline.load(path)
    deployed = step_functions(pipeline, session=account, sleep=lambda _: None)
    states = account.client("stepfunctions")
    running: list[int] = []

    def sleep(_: float) -> None:
        found = states.list_executions(
            stateMachineArn=deployed.state_machine_arn, statusFilter="RUNNING"
        )["executions"]
        running.append(len(found))
        # One that is stopped may be described as running for another moment.
        if len(found) == 2:
            states.stop_execution(executionArn=found[-1]["executionArn"])

    fires = fires_between(
        pipeline, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC)
    )
    started = backfill(
        pipeline, fires, {"words": "by hand"}, session=account, at_most=2, sleep=sleep
    )
    assert [each.run for each in started] == [each.run for each in fires]
    assert (max(running), running.count(2)) == (2, 3)
    for each in started:
        states.stop_execution(executionArn=str(each.execution))


def test_airflow_has_a_command_for_it(orchestrate: Command, nightly: Callable[[str], Path]) -> None:
    said = orchestrate("backfill", nightly("daily"), *JANUARY, "--on", "airflow", "--at-most", "3")
    assert said.out == (
        "airflow backfill create --dag-id daily --from-date 2026-01-01T06:00:00+00:00 "
        "--to-date 2026-01-03T06:00:00+00:00 --max-active-runs 3\n"
    )
    none = ("--from", "2026-01-01", "--to", "2026-01-01T06:00")
    told = orchestrate("backfill", nightly("daily"), *none, "--on", "airflow")
    assert (told.status, told.err) == (0, "the schedule has no time then\n")
    document = orchestrate(
        "backfill", nightly("daily"), *JANUARY, "--on", "airflow", "--json"
    ).document
    assert document["command"][:3] == ["airflow", "backfill", "create"]
    assert len(document["fires"]) == 3


def test_no_schedule_and_too_many_times_are_refused(nightly: Callable[[str], Path]) -> None:
    pipeline = Pipeline.load(nightly("much"))
    begin, end = datetime(2020, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(StartError, match="more than 1000 times until 2022-09-27"):
        fires_between(pipeline, begin, end)
    without = pipeline.model_copy(update={"schedule": None})
    with pytest.raises(StartError, match="has no schedule"):
        fires_between(without, begin, end)


@pytest.mark.parametrize("on", ["step-functions", "airflow"])
def test_runs_that_would_wait_for_each_other_are_not_started_side_by_side(
    orchestrate: Command, nightly: Callable[[str], Path], on: str
) -> None:
    path = nightly("alone")
    path.write_text(path.read_text().replace("overlap: allow\n", ""))
    said = orchestrate("backfill", path, *JANUARY, "--on", on, "--at-most", "2")
    assert (said.status, "runs one at a time (overlap: queue)" in said.err) == (1, True)
