"""The events of an execution, as they happen, are those of GetExecutionHistory."""

from __future__ import annotations

import datetime
import json
from typing import Any

from orchestration.local import EmbeddedAws
from tests.local.conftest import ROLE, wait

CHAIN = {
    "StartAt": "First",
    "QueryLanguage": "JSONata",
    "States": {
        "First": {"Type": "Wait", "Seconds": 20, "Next": "Second"},
        "Second": {"Type": "Pass", "End": True},
    },
}


def _started(aws: EmbeddedAws) -> str:
    states = aws.client("stepfunctions")
    machine = states.create_state_machine(
        name="history", definition=json.dumps(CHAIN), roleArn=ROLE
    )
    arn: str = states.start_execution(stateMachineArn=machine["stateMachineArn"])["executionArn"]
    return arn


def test_events_are_those_of_the_history(aws: EmbeddedAws) -> None:
    execution = _started(aws)
    events: list[dict[str, Any]] = []

    def follow() -> str:
        events.extend(aws.events(execution, after=len(events)))
        return events[-1]["type"] if events else ""

    # A busy machine writes none for a while.
    wait(follow, lambda last: last == "ExecutionSucceeded")
    states = aws.client("stepfunctions")
    history = states.get_execution_history(executionArn=execution)["events"]
    latest_first = states.get_execution_history(executionArn=execution, reverseOrder=True)["events"]
    assert latest_first == history[::-1]
    assert [event["type"] for event in events] == [event["type"] for event in history]
    assert [event["state"] for event in events if event["state"]] == [
        "First",
        "First",
        "Second",
        "Second",
    ]
    assert [datetime.datetime.fromisoformat(event["timestamp"]) for event in events] == [
        event["timestamp"] for event in history
    ]


def test_a_stopped_execution_ends_its_events(aws: EmbeddedAws) -> None:
    definition = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 4000, "End": True}}}
    states = aws.client("stepfunctions")
    machine = states.create_state_machine(
        name="stopped-history", definition=json.dumps(definition), roleArn=ROLE
    )
    execution = states.start_execution(stateMachineArn=machine["stateMachineArn"])["executionArn"]
    wait(lambda: aws.events(execution), lambda now: [each["state"] for each in now[-1:]] == ["W"])
    states.stop_execution(executionArn=execution, error="Stopped", cause="no longer wanted")
    history = wait(
        lambda: states.get_execution_history(executionArn=execution)["events"],
        lambda now: now[-1]["type"] == "ExecutionAborted",
    )
    reason = {"error": "Stopped", "cause": "no longer wanted"}
    assert history[-1]["executionAbortedEventDetails"] == reason
    ended = wait(
        lambda: states.describe_execution(executionArn=execution),
        lambda now: now["status"] == "ABORTED",
    )
    assert {name: ended[name] for name in reason} == reason
    assert aws.events(execution, after=len(history)) == []


def test_an_execution_that_is_stopped_without_a_reason_has_none(aws: EmbeddedAws) -> None:
    definition = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 4000, "End": True}}}
    states = aws.client("stepfunctions")
    machine = states.create_state_machine(
        name="stopped-silently", definition=json.dumps(definition), roleArn=ROLE
    )
    execution = states.start_execution(stateMachineArn=machine["stateMachineArn"])["executionArn"]
    states.stop_execution(executionArn=execution)
    ended = wait(
        lambda: states.describe_execution(executionArn=execution),
        lambda now: now["status"] == "ABORTED",
    )
    assert {"error", "cause"}.isdisjoint(ended)
