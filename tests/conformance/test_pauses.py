"""``pause`` means the same on every backend."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, RunReport, run

pytestmark = pytest.mark.slow

SCALE = 0.01


def ran(on: On, aws: EmbeddedAws, airflow: LocalAirflow, seconds: int) -> RunReport:
    send = {"kind": "aws_call", "service": "sqs", "operation": "SendMessage"}
    request: dict[str, Any] = {"QueueUrl": {"parameter": "queue"}, "MessageBody": "before"}
    stages = {
        "before": {**send, "request": request},
        "settle": {
            "kind": "pause",
            "after": ["before"],
            "duration_s": {"parameter": "seconds"},
        },
        "later": {**send, "after": ["settle"], "request": {**request, "MessageBody": "later"}},
    }
    pipeline = Pipeline.parse(
        {
            "name": "waiting",
            "region": "us-east-1",
            "workspace": "s3://bucket/runs",
            "parameters": {"queue": {}, "seconds": {"type": "number"}},
            "stages": stages,
        }
    )
    queue = aws.client("sqs").create_queue(QueueName="times")["QueueUrl"]
    parameters = {"queue": queue, "seconds": seconds}
    return run(pipeline, on=on, aws=aws, airflow=airflow, parameters=parameters)


def sent(aws: EmbeddedAws) -> dict[str, float]:
    """Return when each message was sent, in seconds."""
    sqs = aws.client("sqs")
    received = sqs.receive_message(
        QueueUrl=sqs.get_queue_url(QueueName="times")["QueueUrl"],
        MaxNumberOfMessages=10,
        AttributeNames=["SentTimestamp"],
    )
    messages = received.get("Messages", [])
    return {m["Body"]: int(m["Attributes"]["SentTimestamp"]) / 1000 for m in messages}


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_a_pause_lies_between_two_stages(on: On, airflow: LocalAirflow) -> None:
    with EmbeddedAws(time_scale=SCALE) as aws:
        report = ran(on, aws, airflow, 300)
        times = sent(aws)
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    assert times["later"] - times["before"] >= 300 * SCALE


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_a_length_out_of_bounds_fails_the_run(on: On, airflow: LocalAirflow) -> None:
    with EmbeddedAws(time_scale=SCALE) as aws:
        report = ran(on, aws, airflow, -3)
        assert set(sent(aws)) == {"before"}
    assert (report.state, report.error) == ("failed", "InvalidPause")
    assert report.cause == "stage settle: duration_s is -3; it must be 1 to 2592000"
