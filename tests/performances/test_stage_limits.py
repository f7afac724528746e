"""The time of a stage: counted from one moment, whoever performs its steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestration.errors import RunError
from orchestration.execution.effects import ServiceError
from orchestration.execution.places import Attempt
from orchestration.expressions import Item, Json, Result, join
from orchestration.graph import (
    Call,
    Choose,
    Clock,
    ErrorPattern,
    ForEach,
    Graph,
    Guarded,
    Step,
    Within,
)
from tests.performances.scripted import Answer, ScriptedEdge
from tests.performances.test_steps import BAD, DONE, EXISTS, RUNS, call, edge, job, run
from tests.stages.test_options import pipeline as of_stage

CLOCK = Clock(name="train.clock")
AGAIN = Attempt(first=False)
GONE = ErrorPattern("ResourceNotFound")


def within(seconds: float) -> Within:
    return Within(since=Result("train.clock", "at"), seconds=seconds)


def limited(seconds: float, **further: Any) -> Call:
    until = {"absent": (GONE,), **further.pop("until", {})}
    return job(within=within(seconds), until=until, **further)


def late(*steps: Step, aws: ScriptedEdge, attempt: Attempt | None = None) -> str:
    """Perform steps that run out of their stage's time; return the cause."""
    with pytest.raises(RunError) as caught:
        run(CLOCK, *steps, edge=aws, attempt=attempt or Attempt())
    assert caught.value.error == "TimedOut"
    return caught.value.cause


def test_a_job_is_stopped_when_the_time_of_its_stage_is_over() -> None:
    aws = edge(DescribeTrainingJob=RUNS)
    assert late(limited(100), aws=aws) == (
        "CreateTrainingJob train.job did not end within the 100 s of stage train; it was told to "
        "stop"
    )
    assert (aws.now, aws.operations[-1]) == (100, "StopTrainingJob")


def test_a_job_that_ends_in_time_knows_of_no_limit() -> None:
    aws, scope = run(CLOCK, limited(100), edge=edge(DescribeTrainingJob=[RUNS, DONE]))
    assert scope.result("train.job", "model") == "s3://b/model"
    assert "StopTrainingJob" not in aws.operations


def test_the_earlier_of_two_limits_counts_under_its_own_name() -> None:
    cause = late(limited(5000), aws=edge(DescribeTrainingJob=RUNS))
    assert cause.endswith("did not end within 3600 s; it was told to stop")


def test_the_time_is_one_for_all_tries() -> None:
    tried = limited(50)
    assert tried.adopt is not None
    tried = replace(tried, adopt=replace(tried.adopt, tries=5))
    aws = edge(DescribeTrainingJob=[RUNS, RUNS, BAD])
    cause = late(tried, aws=aws)
    assert (
        cause == "CreateTrainingJob train.job-2 was not started: the 50 s of stage train are over"
    )
    assert aws.operations.count("CreateTrainingJob") == 1


def test_the_time_is_one_for_all_elements_of_a_loop() -> None:
    each = replace(
        limited(100),
        operation=replace(
            limited(100).operation, request={"TrainingJobName": join("job-", Item())}
        ),
    )
    loop = ForEach(
        name="train.each", items=["a", "b", "c"], body=Graph((each,)), collect={}, max_concurrency=1
    )
    aws = edge(DescribeTrainingJob=RUNS)
    assert late(loop, aws=aws).startswith("CreateTrainingJob job-a did not end")
    assert aws.operations.count("CreateTrainingJob") == 1
    started = "was not started: the 100 s of stage train are over"
    failures = [cause for path, (_, cause) in aws.broke.items() if path.endswith("train.job")]
    assert sorted(failures)[1:] == [f"CreateTrainingJob job-{name} {started}" for name in "bc"]


def test_what_comes_before_a_job_takes_of_its_time() -> None:
    other = replace(limited(100), name="train.first")
    aws = edge(DescribeTrainingJob=[RUNS, RUNS, DONE, RUNS])
    cause = late(other, replace(limited(100), after=("train.first",)), aws=aws)
    assert "train.job did not end within the 100 s" in cause
    assert aws.now == 100


def test_a_step_that_only_asks_ends_at_the_limit_and_stops_nothing() -> None:
    """A deployment waits so for its endpoint, which goes on serving."""
    asking = limited(100, until={"stop": None})
    assert asking.until is not None
    asking = replace(asking, operation=asking.until.poll, adopt=None)
    aws = edge(DescribeTrainingJob=RUNS)
    assert late(asking, aws=aws).endswith("did not end within the 100 s of stage train")
    assert set(aws.operations) == {"DescribeTrainingJob"}


def test_an_endpoint_that_is_late_is_left_as_it_is() -> None:
    steps = of_stage("deploy", timeout_s=100).lower().graph.steps
    served: dict[str, Json] = {"EndpointStatus": "InService", "EndpointConfigName": "old"}
    weights: dict[str, Json] = {"Key": "m/weights", "ETag": '"1"', "Size": 1}
    aws = edge(
        ListObjectsV2={"KeyCount": 1, "Contents": [weights]},
        CreateEndpointConfig={},
        DescribeScalableTargets={},
        UpdateEndpoint={"EndpointArn": "arn"},
        DescribeEndpoint=[served, served, {**served, "EndpointStatus": "Updating"}],
    )
    with pytest.raises(RunError) as caught:
        run(*steps, edge=aws)
    assert (caught.value.error, caught.value.cause) == (
        "TimedOut",
        "DescribeEndpoint deploy.settled did not end within the 100 s of stage deploy",
    )
    asked = ("DescribeEndpoint", "ListObjectsV2", "DescribeScalableTargets")
    changes = [operation for operation in aws.operations if operation not in asked]
    assert changes == ["CreateModel", "CreateEndpointConfig", "UpdateEndpoint"]
    assert aws.now == 100


@pytest.mark.parametrize("fields", [{}, {"timeout_s": 100}])
def test_the_endpoint_of_a_trial_that_is_late_is_deleted(fields: dict[str, Any]) -> None:
    update = {"baking_s": 0, "trial": [{"request": {"a": 1}}]}
    steps = of_stage("deploy", update=update, **fields).lower().graph.steps
    [untried] = [step for step in steps if step.name == "deploy.untried"]
    assert isinstance(untried, Choose)
    [guard] = [step for step in untried.then.steps if isinstance(step, Guarded)]
    creating: Answer = {"EndpointStatus": "Creating"}
    aws = edge(
        CreateEndpoint={},
        DescribeEndpoint=[creating] * 122 + [{"EndpointStatus": "InService"}],
        DeleteEndpoint={},
        DeleteEndpointConfig={},
    )
    acquire = replace(guard.acquire, after=())
    with pytest.raises(RunError, match=r"DescribeEndpoint deploy\.trial_ready did not end within"):
        run(Clock(name="deploy.clock"), replace(guard, acquire=acquire), edge=aws)
    assert aws.operations[-2:] == ["DeleteEndpoint", "DeleteEndpointConfig"]


def test_what_was_acquired_is_released_when_the_time_is_over() -> None:
    guard = Guarded(
        name="train.guard",
        acquire=call("train.acquire"),
        body=Graph((limited(100),)),
        cleanup=Graph((call("train.release", "DeleteModel"),)),
    )
    aws = edge(DescribeTrainingJob=RUNS)
    assert "it was told to stop" in late(guard, aws=aws)
    assert aws.operations[-2:] == ["StopTrainingJob", "DeleteModel"]


@pytest.mark.parametrize(
    ("answers", "cause", "sent"),
    [
        (
            RUNS,
            "CreateTrainingJob train.job did not end within the 100 s of stage train; it was told "
            "to stop",
            "StopTrainingJob",
        ),
        (
            ServiceError("ResourceNotFound", "no job"),
            "CreateTrainingJob train.job was not started: the 100 s of stage train are over",
            "DescribeTrainingJob",
        ),
    ],
)
def test_a_later_process_counts_from_the_same_moment(
    answers: Answer, cause: str, sent: str
) -> None:
    aws = edge(DescribeTrainingJob=answers)
    aws.kept["train.clock"], aws.now = {"at": 0.0}, 5000.0
    assert late(limited(100), aws=aws, attempt=AGAIN) == cause
    assert aws.operations[-1] == sent
    assert "CreateTrainingJob" not in aws.operations


def test_a_job_that_ended_well_while_no_process_lived_counts() -> None:
    aws = edge(DescribeTrainingJob=DONE)
    aws.kept["train.clock"], aws.now = {"at": 0.0}, 5000.0
    _, scope = run(CLOCK, limited(100), edge=aws, attempt=AGAIN)
    assert scope.result("train.job", "model") == "s3://b/model"


def test_what_cannot_be_asked_for_by_its_name_is_asked_for_again_to_be_stopped() -> None:
    aws = edge(DescribeTrainingJob=RUNS)
    aws.kept["train.clock"], aws.now = {"at": 0.0}, 5000.0
    nameless = limited(100, until={"absent": ()})
    assert "it was told to stop" in late(nameless, aws=aws, attempt=AGAIN)
    assert aws.operations[0] == "CreateTrainingJob"


def test_a_job_of_an_earlier_attempt_is_adopted_within_the_time() -> None:
    aws = edge(CreateTrainingJob=EXISTS, DescribeTrainingJob=[RUNS, DONE])
    _, scope = run(CLOCK, limited(100), edge=aws, attempt=AGAIN)
    assert scope.result("train.job", "model") == "s3://b/model"
