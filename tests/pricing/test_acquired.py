"""What a run that has ended has cost beside its jobs: file systems and endpoints, until its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from orchestration import Pipeline
from orchestration.catalog import rate
from orchestration.direct.progress import StepRun, StepState
from orchestration.graph import Call, Guarded, all_steps, stage_of
from orchestration.pricing.acquired import of_run
from orchestration.pricing.lines import HOURS_A_MONTH, Line
from tests.conformance.pipelines import PARAMETERS, file_system, served

BEGAN = datetime(2026, 11, 24, 6, tzinfo=UTC)


def billed(pipeline: Pipeline, hours: dict[str, float], failed: str = "") -> list[Line]:
    """Return the lines of a run whose steps took an hour each, and these so many."""
    workflow, at = pipeline.lower(), BEGAN
    steps = []
    for step in all_steps(workflow.graph):
        if isinstance(step, Call):
            ended = at + timedelta(hours=hours.get(step.name, 0))
            state: StepState = "succeeded" if stage_of(step.name) != failed else "failed"
            steps.append(StepRun(step.name, state, at, ended))
            at = ended
    return of_run(workflow, "us-east-1", PARAMETERS, steps)


def test_a_file_system_costs_from_its_creation_to_its_deletion() -> None:
    pipeline = file_system()
    [guard] = [s for s in all_steps(pipeline.lower().graph) if isinstance(s, Guarded)]
    [line] = billed(pipeline, {guard.acquire.name: 0.5, "train.job": 3})
    price = rate("lustre.SCRATCH_2", "us-east-1")
    assert price is not None
    assert line.rate == price
    assert line.expected == 1200 * 3.5 / HOURS_A_MONTH


def test_an_endpoint_costs_from_its_deployment_to_the_end_of_the_run() -> None:
    pipeline = served()
    last = [s.name for s in all_steps(pipeline.lower().graph) if stage_of(s.name) == "deploy"][-1]
    [line] = [each for each in billed(pipeline, {last: 2}) if "ml.c5.xlarge" in each.what]
    assert (line.stage, line.expected) == ("deploy", 0)
    assert "endpoint that runs on" in line.what
    assert billed(pipeline, {}, failed="deploy") == []


def test_a_run_that_reached_nothing_has_cost_nothing_beside_jobs() -> None:
    assert of_run(served().lower(), "us-east-1", PARAMETERS, []) == []


def test_a_price_is_dated_by_its_source_or_by_the_day_it_was_read() -> None:
    price = rate("transitions", "us-east-1")
    assert price is not None
    assert (price.date, price.dated) == (None, "read 2026-11-22")
    price = rate("datasync.BASIC.gb", "ap-northeast-1")
    assert price is not None
    assert price.dated == str(price.date)
