"""What AWS refuses, or leaves out of a response, has the same cause with every driver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestration.checks.rules import check
from orchestration.expressions import join, parameter, run_id
from orchestration.graph import Call, Graph, Output, ParameterSpec, Workflow
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import direct_runs, executions
from tests.conformance import normal
from tests.conformance.test_conformance import BACKENDS
from tests.conformance.test_fallbacks import POLLED, ROLE, SCALE, operation, training

pytestmark = [pytest.mark.slow]

DENIED = "User: arn:aws:iam::123456789012:user/me is not authorized"
STOPPED = "; it was told to stop"


def job(**outputs: Output) -> Call:
    """A job that is polled, not followed by an integration."""
    made = replace(training("ml.m5.xlarge", stopping=POLLED), fallback=None)
    assert made.until is not None
    return replace(made, until=replace(made.until, outputs=outputs))


def asking() -> Call:
    """A step that only asks, until a job is over."""
    job_name = join("fit-", parameter("token"), "-", run_id())
    made = job()
    assert made.until is not None
    until = replace(made.until, stop=None)
    return Call(name="look.job", operation=operation("Describe", job_name), until=until)


def causes(airflow: LocalAirflow, name: str, step: Call, *faults: Fault) -> dict[str, str]:
    made = check(
        Workflow(
            name="causes",
            graph=Graph((step,)),
            parameters=(ParameterSpec(name="token", default="t"),),
        )
    )
    said: dict[str, str] = {}
    for backend in BACKENDS:
        with EmbeddedAws(time_scale=SCALE) as aws:
            s3: Any = aws.client("s3")
            s3.create_bucket(Bucket="workspace")
            aws.provide(roles=[ROLE])
            for fault in faults:
                aws.inject(fault)
            if backend == "airflow":
                cause = airflow.run(made, aws=aws, run_id=name, time_scale=SCALE).cause
            elif backend == "direct":
                place = "s3://workspace"
                cause = direct_runs.follow(aws, made, {}, name, print, workspace=place).cause
            else:
                cause = executions.follow(aws, made, {}, name, print).cause
            said[backend] = normal.anonymous(cause)
    return said


@pytest.mark.parametrize(
    ("step", "cause"),
    [
        (job(), f"DescribeTrainingJob of CreateTrainingJob fit-t-<id>: {DENIED}{STOPPED}"),
        (asking(), f"DescribeTrainingJob look.job: {DENIED}"),
    ],
    ids=["of a job", "of a step that only asks"],
)
def test_a_refused_poll(airflow: LocalAirflow, step: Call, cause: str) -> None:
    denied = Fault("sagemaker", "DescribeTrainingJob", "AccessDeniedException", DENIED, times=9)
    told = causes(airflow, step.name, step, denied)
    assert set(told.values()) == {normal.anonymous(cause)}


def test_a_missing_output(airflow: LocalAirflow) -> None:
    step = job(why=Output(("FailureReason",), kind="string"))
    said = causes(airflow, "missing-output", step)
    told = "train.job: no string FailureReason"
    assert said["airflow"] == said["direct"] == f'"{told}"'
    # Step Functions says around it which expression failed.
    assert told in said["step-functions"]
