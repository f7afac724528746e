"""The ends of executions start what a rule says, as EventBridge does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestration.local import EmbeddedAws
from tests.local.conftest import ROLE, wait

pytestmark = pytest.mark.slow

FAILING = {"StartAt": "End", "States": {"End": {"Type": "Fail", "Error": "Broken"}}}
PASSING = {"StartAt": "End", "States": {"End": {"Type": "Pass", "End": True}}}


def machine(aws: EmbeddedAws, name: str, definition: dict[str, Any]) -> str:
    created = aws.client("stepfunctions").create_state_machine(
        name=name, definition=json.dumps(definition), roleArn=ROLE
    )
    return str(created["stateMachineArn"])


@pytest.mark.parametrize("given", [None, '{"fixed": true}'], ids=["event", "input"])
def test_a_rule_starts_its_target_after_a_failure_only(aws: EmbeddedAws, given: str | None) -> None:
    states, events = aws.client("stepfunctions"), aws.client("events")
    name = f"told-{'event' if given is None else 'input'}"
    failing, passing = machine(aws, f"{name}-f", FAILING), machine(aws, f"{name}-p", PASSING)
    told = machine(aws, name, PASSING)
    pattern = {
        "source": ["aws.states"],
        "detail": {"status": ["FAILED"], "stateMachineArn": [failing, passing]},
    }
    events.put_rule(Name=name, EventPattern=json.dumps(pattern))
    target = {"Id": "1", "Arn": told, "RoleArn": ROLE, **({"Input": given} if given else {})}
    events.put_targets(Rule=name, Targets=[target])
    states.start_execution(stateMachineArn=passing)
    execution = states.start_execution(stateMachineArn=failing)["executionArn"]
    found = wait(
        lambda: states.list_executions(stateMachineArn=told),
        lambda listed: bool(listed["executions"]),
    )["executions"]
    assert len(found) == 1
    started = states.describe_execution(executionArn=found[0]["executionArn"])
    received = json.loads(started["input"])
    if given is None:
        assert received["detail"]["executionArn"] == execution
        assert received["detail"]["error"] == "Broken"
        assert received["detail"]["stateMachineVersionArn"] is None
    else:
        assert received == json.loads(given)
