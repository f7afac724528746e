"""A state machine and the pipeline made of it send the same on the embedded AWS."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.importing import from_data
from orchestration.local import EmbeddedAws
from orchestration.local.run import run

pytestmark = pytest.mark.slow


def send(text: Any, **more: Any) -> dict[str, Any]:
    key = "MessageBody.$" if str(text).startswith(("$", "States.")) else "MessageBody"
    parameters = {"QueueUrl.$": "$.queue", key: text}
    arn = "arn:aws:states:::sqs:sendMessage"
    return {"Type": "Task", "Resource": arn, "Parameters": parameters, "ResultPath": None, **more}


MACHINE: dict[str, Any] = {
    "StartAt": "First",
    "States": {
        "First": send("States.Format('day {} of {}', $.day, $.name)", Next="Big"),
        "Big": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.size", "NumericGreaterThan": 100, "Next": "Refuse"},
                {
                    "And": [
                        {"Variable": "$.size", "NumericGreaterThanEquals": 10},
                        {"Not": {"Variable": "$.name", "StringEquals": "test"}},
                    ],
                    "Next": "Large",
                },
                {"Variable": "$.size", "NumericEquals": 0, "Next": "Nothing"},
            ],
            "Default": "Small",
        },
        "Refuse": {"Type": "Fail", "Error": "TooBig", "Cause": "too big"},
        "Nothing": {"Type": "Succeed"},
        "Large": send("large", Next="Both"),
        "Small": send("small", Next="Both"),
        "Both": {
            "Type": "Parallel",
            "ResultPath": None,
            "Branches": [
                {"StartAt": "Left", "States": {"Left": send("$.name", End=True)}},
                {"StartAt": "Right", "States": {"Right": send("right", End=True)}},
            ],
            "Next": "Last",
        },
        "Last": send("last", End=True),
    },
}


def received(aws: EmbeddedAws, queue: str) -> list[str]:
    bodies: list[str] = []
    while (
        found := aws.client("sqs")
        .receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
        .get("Messages")
    ):
        bodies += [message["Body"] for message in found]
        for message in found:
            aws.client("sqs").delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    return sorted(bodies)


def executed(aws: EmbeddedAws, name: str, given: dict[str, Any]) -> dict[str, Any]:
    states = aws.client("stepfunctions")
    machine = states.create_state_machine(
        name=name,
        definition=json.dumps(MACHINE),
        roleArn="arn:aws:iam::123456789012:role/machine",
    )
    started = states.start_execution(
        stateMachineArn=machine["stateMachineArn"], input=json.dumps(given)
    )
    while True:
        told: dict[str, Any] = states.describe_execution(executionArn=started["executionArn"])
        if told["status"] != "RUNNING":
            return told
        time.sleep(0.05)


@pytest.fixture(scope="module")
def aws() -> Any:
    with EmbeddedAws(time_scale=0.01) as account:
        yield account


@pytest.mark.parametrize(
    ("size", "name"), [(500, "x"), (50, "x"), (50, "test"), (5, "x"), (0, "{% x %}"), (10, "ö'\"")]
)
def test_both_send_the_same(size: int, name: str, aws: EmbeddedAws) -> None:
    queue = aws.client("sqs").create_queue(QueueName=f"all-{size}-{len(name)}")["QueueUrl"]
    given = {"queue": queue, "day": "2027-01-01", "name": name, "size": size}
    theirs = executed(aws, f"original-{size}-{len(name)}", given)
    sent = received(aws, queue)
    imported = from_data(MACHINE, file="original")
    assert [note.message for note in imported.notes] == []
    parameters = {**given, "workspace": "s3://bucket/runs"}
    pipeline = Pipeline.parse({**imported.description, "region": "us-east-1"})
    report = run(pipeline, on="step-functions", aws=aws, parameters=parameters)
    assert report.state == theirs["status"].lower()
    assert report.error == theirs.get("error")
    assert received(aws, queue) == sent
