"""Executions are logged as Step Functions logs them, and what can't be logged is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from tests.local.conftest import ROLE, wait

GROUP = "/aws/vendedlogs/states/logged"
ARN = f"arn:aws:logs:us-east-1:123456789012:log-group:{GROUP}"
FAILING = {
    "QueryLanguage": "JSONata",
    "StartAt": "Pass",
    "States": {
        "Pass": {"Type": "Pass", "Next": "Fail"},
        "Fail": {"Type": "Fail", "Error": "Bad"},
    },
}


def logging(**changed: Any) -> dict[str, Any]:
    group = {"cloudWatchLogsLogGroup": {"logGroupArn": f"{ARN}:*"}}
    return {"level": "ALL", "includeExecutionData": True, "destinations": [group], **changed}


def create(aws: EmbeddedAws, name: str, configuration: dict[str, Any]) -> str:
    made = aws.client("stepfunctions").create_state_machine(
        name=name,
        definition=json.dumps(FAILING),
        roleArn=ROLE,
        loggingConfiguration=configuration,
    )
    return str(made["stateMachineArn"])


def records(aws: EmbeddedAws, machine: str) -> list[dict[str, Any]]:
    states, logs = aws.client("stepfunctions"), aws.client("logs")
    run = states.start_execution(stateMachineArn=machine, input='{"a": 1}')["executionArn"]
    wait(lambda: states.describe_execution(executionArn=run), lambda x: x["status"] != "RUNNING")
    name = run.rpartition(":")[2]
    [stream] = [
        each["logStreamName"]
        for each in logs.describe_log_streams(logGroupName=GROUP)["logStreams"]
        if each["logStreamName"].endswith(name)
    ]
    events = logs.get_log_events(logGroupName=GROUP, logStreamName=stream)["events"]
    return [json.loads(event["message"]) for event in events]


@pytest.fixture(scope="module")
def group(aws: EmbeddedAws) -> str:
    aws.client("logs").create_log_group(logGroupName=GROUP)
    return GROUP


def test_every_event_is_logged_with_its_data(aws: EmbeddedAws, group: str) -> None:
    found = records(aws, create(aws, "logged", logging()))
    assert [each["type"] for each in found] == [
        "ExecutionStarted",
        "PassStateEntered",
        "PassStateExited",
        "FailStateEntered",
        "ExecutionFailed",
    ]
    assert json.loads(found[0]["details"]["input"]) == {"a": 1}
    assert found[0]["execution_arn"].split(":")[5:7] == ["execution", "logged"]


def test_a_level_chooses_events_and_data_is_left_out(aws: EmbeddedAws, group: str) -> None:
    machine = create(aws, "logged-errors", logging(level="ERROR", includeExecutionData=False))
    found = records(aws, machine)
    assert [each["type"] for each in found] == ["FailStateEntered", "ExecutionFailed"]
    assert "input" not in found[0]["details"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"destinations": []}, "exactly one Log Destination"),
        (
            {"destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": ARN}}]},
            r"must end with ':\*'",
        ),
        (
            {"destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": f"{ARN}-gone:*"}}]},
            "Log Destination not found",
        ),
    ],
)
def test_logging_that_goes_nowhere_is_refused(
    changed: dict[str, Any], message: str, aws: EmbeddedAws, group: str
) -> None:
    with pytest.raises(ClientError, match=message) as caught:
        create(aws, "logged-nowhere", logging(**changed))
    assert caught.value.response["Error"]["Code"] == "InvalidLoggingConfiguration"
