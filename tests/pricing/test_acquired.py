"""What a run that has ended has cost beside its jobs: file systems and endpoints, until its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from orchestration import Deployment, EndpointUpdate, Pipeline, TrainingJob
from orchestration.catalog import rate
from orchestration.direct.progress import StepRun, StepState
from orchestration.graph import Call, Guarded, Require, all_steps
from orchestration.pricing.acquired import of_run
from orchestration.pricing.lines import HOURS_A_MONTH, Line
from orchestration.stages.hosting.components import InferenceComponent
from tests.conformance.pipelines import PARAMETERS, deployment, file_system, served, training
from tests.conformance.pipelines import pipeline as conformance

BEGAN = datetime(2026, 11, 24, 6, tzinfo=UTC)


def billed(
    pipeline: Pipeline, hours: dict[str, float], failed: str = "", left: str = ""
) -> list[Line]:
    """Return the lines of a run whose steps take no time, but for these, up to one that fails.

    ``left``: a step that an earlier condition leaves out.
    """
    workflow, at = pipeline.lower(), BEGAN
    steps = []
    for step in all_steps(workflow.graph):
        if isinstance(step, Call | Require) and step.name != left:
            ended = at + timedelta(hours=hours.get(step.name, 0))
            state: StepState = "failed" if step.name == failed else "succeeded"
            steps.append(StepRun(step.name, state, at, ended))
            at = ended
            if step.name == failed:
                break
    return of_run(workflow, "us-east-1", PARAMETERS, steps)


def standing(*lines: Line) -> list[tuple[str, float]]:
    """Return the stages of endpoints that run on, and the hours of their instances."""
    found = [each for each in lines if "endpoint that runs" in each.what]
    return [(each.stage, round(each.expected or 0, 6)) for each in found]


def shop(*stages: Deployment | TrainingJob) -> Pipeline:
    return conformance("shop", *stages, region="us-east-1")


def hosted(name: str) -> Deployment:
    """Return a deployment to a component of an endpoint that others share."""
    return deployment(
        name,
        "s3://models/one/",
        endpoint_name="shared",
        instance_count=2,
        inference_component=InferenceComponent(name=name, memory_mib=1024),
        update=EndpointUpdate(),
    )


def later() -> TrainingJob:
    return training("later", "s3://incoming/set/", after=("deploy",))


def test_a_file_system_costs_from_its_creation_to_its_deletion() -> None:
    pipeline = file_system()
    [guard] = [s for s in all_steps(pipeline.lower().graph) if isinstance(s, Guarded)]
    [line] = billed(pipeline, {guard.acquire.name: 0.5, "train.job": 3})
    price = rate("lustre.SCRATCH_2", "us-east-1")
    assert price is not None
    assert line.rate == price
    assert line.expected == 1200 * 3.5 / HOURS_A_MONTH


def test_an_endpoint_costs_from_its_deployment_to_the_end_of_the_run() -> None:
    pipeline = shop(deployment("deploy", "s3://models/one/", instance_count=2), later())
    assert standing(*billed(pipeline, {"deploy.create": 2, "later.job": 3})) == [("deploy", 6)]


def test_an_endpoint_whose_smoke_test_fails_stands_all_the_same() -> None:
    pipeline = shop(deployment("deploy", "s3://models/one/", instance_count=2))
    assert standing(*billed(pipeline, {"deploy.invoke": 3}, "deploy.invoke")) == [("deploy", 6)]


@pytest.mark.parametrize("failed", ["deploy.create", "deploy.settled", "deploy.in_service"])
def test_an_endpoint_that_never_serves_costs_nothing(failed: str) -> None:
    pipeline = shop(deployment("deploy", "s3://models/one/"))
    assert standing(*billed(pipeline, {failed: 3}, failed)) == []


def test_an_endpoint_of_components_costs_once_where_the_run_has_made_it() -> None:
    pipeline = shop(hosted("deploy"), hosted("beside").model_copy(update={"after": ("deploy",)}))
    took = {"deploy.invoke": 1.0, "beside.invoke": 2.0}
    assert standing(*billed(pipeline, took)) == [("deploy", 6)]
    assert standing(*billed(pipeline, took, left="deploy.create")) == [("beside", 4)]
    alone = shop(hosted("deploy"))
    assert standing(*billed(alone, took, left="deploy.create")) == []
    assert standing(*billed(alone, took, "deploy.settled")) == [("deploy", 0)]


def test_a_run_that_reached_nothing_has_cost_nothing_beside_jobs() -> None:
    assert of_run(served().lower(), "us-east-1", PARAMETERS, []) == []


def test_a_price_is_dated_by_its_source_or_by_the_day_it_was_read() -> None:
    price = rate("transitions", "us-east-1")
    assert price is not None
    assert (price.date, price.dated) == (None, "read 2026-11-22")
    price = rate("datasync.BASIC.gb", "ap-northeast-1")
    assert price is not None
    assert price.dated == str(price.date)
