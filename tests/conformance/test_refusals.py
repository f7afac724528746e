"""What is sent again, and what becomes of a job whose call or poll failed, on every driver."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orchestration.execution.sending import UNCLEAR
from orchestration.graph import Call, Graph, Operation, Output, Retry
from orchestration.local import Fault
from orchestration.local.airflow import LocalAirflow
from tests.conformance import normal
from tests.conformance.test_conformance import BACKENDS, Backend
from tests.conformance.test_fallbacks import POLLED, Ended, endure, training, workflow

pytestmark = [pytest.mark.slow]

ATTEMPTS = Retry().attempts
DENIED = "User: arn:aws:iam::123456789012:user/me is not authorized"
WAYS = pytest.mark.parametrize("stopping", [{}, POLLED], ids=["followed", "polled"])
Suffer = Callable[..., dict[Backend, Ended]]


@pytest.fixture
def everywhere(airflow: LocalAirflow, request: pytest.FixtureRequest) -> Suffer:
    name = re.sub(r"\W+", "-", request.node.name)[:60].strip("-")

    def suffer(call: Call, *faults: Fault) -> dict[Backend, Ended]:
        made = replace(workflow(job({})), graph=Graph((call,)), outputs={})
        return {b: endure(made, b, name, airflow, faults) for b in BACKENDS}

    return suffer


def job(stopping: dict[str, int]) -> Call:
    return replace(training("ml.m5.xlarge", stopping=stopping), fallback=None)


def throttled(times: int, operation: str = "CreateTrainingJob", **more: Any) -> Fault:
    how = {"times": times, **more}
    return Fault("sagemaker", operation, "ThrottlingException", "Rate exceeded", **how)


def denied(operation: str, times: int = 99) -> Fault:
    return Fault("sagemaker", operation, "AccessDeniedException", DENIED, times=times)


def sent(ended: Ended, operation: str = "CreateTrainingJob") -> list[str | None]:
    return [call.error_code for call in ended.calls if call.operation == operation]


def causes(outcomes: dict[Backend, Ended]) -> set[str]:
    return {normal.anonymous(ended.cause) for ended in outcomes.values()}


@WAYS
def test_a_job_that_cannot_be_asked_for_is_stopped_and_named(
    everywhere: Suffer, stopping: dict[str, int]
) -> None:
    outcomes = everywhere(job(stopping), denied("DescribeTrainingJob"))
    for ended in outcomes.values():
        assert (ended.state, ended.error) == ("failed", "JobNotFollowed")
        assert set(ended.jobs.values()) <= {"Stopping", "Stopped", "Completed"}
        assert sent(ended, "StopTrainingJob")
        assert len(
            {c.request["TrainingJobName"] for c in ended.calls if "TrainingJobName" in c.request}
        )
    begin = "DescribeTrainingJob of CreateTrainingJob fit-t-<id>: "
    assert causes(outcomes) == {normal.anonymous(f"{begin}{DENIED}; it was told to stop")}


@WAYS
def test_a_job_is_followed_whose_response_was_lost_and_whose_retries_were_throttled(
    everywhere: Suffer, stopping: dict[str, int]
) -> None:
    lost = throttled(1, after_effect=True)
    for ended in everywhere(job(stopping), lost, throttled(ATTEMPTS - 1)).values():
        assert ended.state == "succeeded", ended.cause
        assert sent(ended) == ["ThrottlingException"] * ATTEMPTS
        assert list(ended.jobs.values()) == ["Completed"]


@WAYS
def test_a_call_that_never_got_through_fails_with_its_own_cause(
    everywhere: Suffer, stopping: dict[str, int]
) -> None:
    outcomes = everywhere(job(stopping), throttled(999))
    for backend, ended in outcomes.items():
        assert ended.state == "failed"
        # Airflow tries the task again, all of it.
        tasks = len(sent(ended)) // ATTEMPTS if backend == "airflow" else 1
        assert sent(ended) == ["ThrottlingException"] * ATTEMPTS * tasks
        assert set(sent(ended, "DescribeTrainingJob")) == {"ValidationException"}
        assert ended.jobs == {}
    assert causes(outcomes) == {'"CreateTrainingJob fit-t-<id>: Rate exceeded"'}


@WAYS
def test_a_refused_job_is_asked_for_once(everywhere: Suffer, stopping: dict[str, int]) -> None:
    outcomes = everywhere(job(stopping), denied("CreateTrainingJob"))
    for backend, ended in outcomes.items():
        assert ended.state == "failed"
        assert sent(ended) == ["AccessDeniedException"]
        # An integration that waits does not say which of its calls was refused.
        looked = backend == "step-functions" and not stopping
        assert len(sent(ended, "DescribeTrainingJob")) == looked


def listing() -> Call:
    return Call(
        name="look.list",
        operation=Operation("s3", "ListObjectsV2", {"Bucket": "workspace"}),
        outputs={"count": Output(("KeyCount",), kind="number")},
    )


def test_a_refused_listing_is_sent_again_only_where_it_has_no_name(everywhere: Suffer) -> None:
    refused = Fault("s3", "ListObjectsV2", "InvalidArgument", "no such argument", times=99)
    for backend, ended in everywhere(listing(), refused).items():
        assert ended.state == "failed"
        times = UNCLEAR.attempts if backend == "step-functions" else 1
        assert sent(ended, "ListObjectsV2") == ["InvalidArgument"] * times


def test_a_throttled_listing_is_sent_again(everywhere: Suffer) -> None:
    slow = Fault("s3", "ListObjectsV2", "SlowDown", "Reduce your request rate", 503, 2)
    for ended in everywhere(listing(), slow).values():
        assert ended.state == "succeeded", ended.cause
        assert sent(ended, "ListObjectsV2") == ["SlowDown", "SlowDown", None]
