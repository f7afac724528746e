"""Executions that overlap, by each policy: the older one is held until a test ends it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends.stepfunctions.overlapping import SKIPPED
from orchestration.deploy import step_functions
from orchestration.local import EmbeddedAws
from tests.local.conftest import ROLE, wait

pytestmark = pytest.mark.slow
PIPELINE: dict[str, Any] = {
    "region": "us-east-1",
    "workspace": "s3://my-bucket/overlapping",
    "role": ROLE,
    "stages": [
        {"name": "hold", "kind": "pause", "duration_s": 2_592_000},
        {
            "name": "tell",
            "kind": "aws_call",
            "service": "sns",
            "operation": "Publish",
            "request": {"TopicArn": "arn:aws:sns:us-east-1:123456789012:news", "Message": "done"},
            "after": ["hold"],
        },
    ],
}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.001) as embedded:
        embedded.provide(roles=[ROLE])
        yield embedded


class Machine:
    """A deployed pipeline whose runs last until they are stopped."""

    def __init__(self, aws: EmbeddedAws, policy: str) -> None:
        pipeline = Pipeline(name=policy.replace("_", "-"), overlap=policy, **PIPELINE)
        self.states: Any = aws.client("stepfunctions")
        self.arn = step_functions(pipeline, session=aws).state_machine_arn

    def start(self, name: str, run: str | None = None) -> str:
        given = {} if run is None else {"orchestration:run": run}
        started = self.states.start_execution(
            stateMachineArn=self.arn, name=name, input=json.dumps(given)
        )
        return str(started["executionArn"])

    def enters(self, execution: str, state: str) -> None:
        """Wait until an execution has come to a state."""
        wait(lambda: self.entered(execution), lambda entered: state in entered)

    def entered(self, execution: str) -> list[str]:
        pages = self.states.get_paginator("get_execution_history")
        return [
            event["stateEnteredEventDetails"]["name"]
            for page in pages.paginate(executionArn=execution)
            for event in page["events"]
            if "stateEnteredEventDetails" in event
        ]

    def ends(self, execution: str) -> dict[str, Any]:
        def described() -> dict[str, Any]:
            return dict(self.states.describe_execution(executionArn=execution))

        return wait(described, lambda each: each["status"] != "RUNNING")

    def stop(self, *executions: str) -> None:
        for each in executions:
            self.states.stop_execution(executionArn=each)
            self.ends(each)


def test_a_run_that_queues_goes_on_when_the_older_ones_have_ended(aws: EmbeddedAws) -> None:
    machine = Machine(aws, "queue")
    first = machine.start("first")
    machine.enters(first, "hold-wait")
    second = machine.start("second")
    machine.enters(second, "WaitForOlder")
    third = machine.start("a-third")
    machine.enters(third, "WaitForOlder")
    machine.stop(first)
    machine.enters(second, "hold-wait")
    machine.stop(second)
    machine.enters(third, "hold-wait")
    machine.stop(third)


def test_a_run_is_skipped_while_an_older_one_is_under_way(aws: EmbeddedAws) -> None:
    machine = Machine(aws, "skip")
    first = machine.start("first")
    machine.enters(first, "hold-wait")
    second = machine.ends(machine.start("second"))
    assert (second["status"], json.loads(second["output"])) == ("SUCCEEDED", {SKIPPED: first})
    machine.stop(first)
    third = machine.start("third")
    machine.enters(third, "hold-wait")
    machine.stop(third)


def test_runs_go_on_side_by_side_where_that_is_allowed(aws: EmbeddedAws) -> None:
    machine = Machine(aws, "allow")
    both = [machine.start("first"), machine.start("second")]
    for each in both:
        machine.enters(each, "hold-wait")
    machine.stop(*both)


@pytest.mark.parametrize("policy", ["queue", "skip"])
def test_of_executions_of_one_run_one_goes_on(aws: EmbeddedAws, policy: str) -> None:
    """EventBridge Scheduler may start a run twice."""
    machine = Machine(aws, policy)
    first = machine.start(f"{policy}-once", run="nightly")
    second = machine.start(f"{policy}-twice", run="nightly")
    wait(
        lambda: [machine.entered(each) for each in (first, second)],
        lambda both: sorted(entered[-1] for entered in both) == ["Skipped", "hold-wait"],
    )
    statuses = [
        machine.states.describe_execution(executionArn=each)["status"] for each in (first, second)
    ]
    assert sorted(statuses) == ["RUNNING", "SUCCEEDED"]
    machine.stop(*(e for e, s in zip((first, second), statuses, strict=True) if s == "RUNNING"))
