"""Whoever a pipeline tells hears the same of a run's end from every driver."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from orchestration import DataStaging, Parameter, Pipeline, join, parameter
from orchestration.deploy import step_functions
from orchestration.direct import Interrupted, run
from orchestration.direct.pipelines import outcome_of
from orchestration.errors import DeployError
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run.executions import role
from orchestration.local.run.preparation import prepare
from tests.interrupted import interrupt
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

ALERTS = "arn:aws:sns:us-east-1:123456789012:alerts"
NEWS = "arn:aws:sns:us-east-1:123456789012:news"
HEARD = {"on_failure": {"sns_topic": ALERTS}, "on_success": {"sns_topic": [NEWS]}}
MISSING = "s3://incoming/nothing"


def copying(**fields: Any) -> Pipeline:
    """A staging of data and nothing else: the quickest pipeline there is."""
    given: dict[str, Any] = {
        "name": "copying",
        "parameters": {"bucket": Parameter(), "data": Parameter()},
        "workspace": join("s3://", parameter("bucket"), "/copying"),
        "stages": (DataStaging(name="staging", source=parameter("data")),),
        "notify": HEARD,
    }
    return Pipeline(**{**given, **fields})


@dataclass
class Listener:
    """An account whose topics have a reader."""

    aws: EmbeddedAws
    queue: str
    parameters: dict[str, Any]

    def heard(self, times: int = 1) -> list[dict[str, Any]]:
        """Wait for messages; returns all that have come."""
        messages: list[dict[str, Any]] = []
        end = time.monotonic() + PATIENCE_S
        while len(messages) < times and time.monotonic() < end:
            messages += self.read()
            time.sleep(0.05)
        return [*messages, *self.read()]

    def read(self) -> list[dict[str, Any]]:
        sqs = self.aws.client("sqs")
        received = sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10)
        envelopes = []
        for message in received.get("Messages", ()):
            sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=message["ReceiptHandle"])
            envelopes.append(json.loads(message["Body"]))
        return envelopes

    def allow(self, topic: str) -> None:
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sns:Publish",
            "Resource": topic,
        }
        self.aws.client("sns").set_topic_attributes(
            TopicArn=topic,
            AttributeName="Policy",
            AttributeValue=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
        )


@pytest.fixture(scope="module")
def account() -> Iterator[Listener]:
    with EmbeddedAws(time_scale=0.003) as aws:
        arn = role(aws, "SageMakerExecution", "sagemaker.amazonaws.com")
        for bucket in ("workspace", "incoming"):
            aws.client("s3").create_bucket(Bucket=bucket)
        aws.client("s3").put_object(Bucket="incoming", Key="set/one.csv", Body=b"1")
        queue = aws.client("sqs").create_queue(QueueName="ears")["QueueUrl"]
        listener = Listener(
            aws, queue, {"bucket": "workspace", "data": "s3://incoming/set", "role": arn}
        )
        for name in ("alerts", "news"):
            topic = aws.client("sns").create_topic(Name=name)["TopicArn"]
            aws.client("sns").subscribe(
                TopicArn=topic, Protocol="sqs", Endpoint="arn:aws:sqs:us-east-1:123456789012:ears"
            )
            listener.allow(topic)
        yield listener


@pytest.fixture
def listener(account: Listener) -> Listener:
    account.read()
    return account


def executed(listener: Listener, pipeline: Pipeline, **given: Any) -> str:
    values = {**listener.parameters, **given}
    deployment = step_functions(pipeline, session=listener.aws, parameters=values)
    started = listener.aws.client("stepfunctions").start_execution(
        stateMachineArn=deployment.state_machine_arn, input=json.dumps(values)
    )
    return str(started["executionArn"])


Drive = Callable[..., object]


@pytest.fixture(params=["direct", "airflow", "step-functions"])
def drive(request: pytest.FixtureRequest, listener: Listener, airflow: LocalAirflow) -> Drive:
    """Run the pipeline to its end on one driver."""

    def direct(**given: Any) -> object:
        values = {**listener.parameters, **given}
        return outcome_of(copying(), values, session=listener.aws)

    def by_airflow(**given: Any) -> object:
        return airflow.run(
            copying(),
            aws=listener.aws,
            parameters={**listener.parameters, **given},
            run_id=f"run-{time.monotonic_ns()}",
        )

    def by_execution(**given: Any) -> object:
        return executed(listener, copying(), **given)

    drivers = {"direct": direct, "airflow": by_airflow, "step-functions": by_execution}
    return drivers[request.param]


def test_a_failure_is_told_with_its_reason(drive: Drive, listener: Listener) -> None:
    drive(data=MISSING)
    [envelope] = listener.heard()
    message = json.loads(envelope["Message"])
    assert envelope["TopicArn"] == ALERTS
    assert envelope.get("Subject") in (None, "Pipeline copying failed")
    told = {name: message[name] for name in ("subject", "pipeline", "state")}
    assert told == {
        "subject": "Pipeline copying failed",
        "pipeline": "copying",
        "state": "FAILED",
    }
    assert message["detail"]["error"] == "SourceNotUsable"
    assert message["detail"]["cause"].endswith("saw 0, the largest of 0 bytes")
    assert message["detail"].get("stage") in (None, "staging")


def test_a_success_is_told_to_those_who_asked(drive: Drive, listener: Listener) -> None:
    drive()
    [envelope] = listener.heard()
    message = json.loads(envelope["Message"])
    assert envelope["TopicArn"] == NEWS
    assert (message["subject"], message["state"]) == ("Pipeline copying succeeded", "SUCCEEDED")
    assert "detail" not in message


def test_an_aborted_execution_is_told(listener: Listener) -> None:
    deployment = step_functions(copying(), session=listener.aws, parameters=listener.parameters)
    states = listener.aws.client("stepfunctions")
    waiting = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 900_000, "End": True}}}
    arn = deployment.state_machine_arn
    states.update_state_machine(stateMachineArn=arn, definition=json.dumps(waiting))
    execution = states.start_execution(stateMachineArn=arn, input="{}")["executionArn"]
    # Neither an error nor a cause has to be given.
    states.stop_execution(executionArn=execution)
    [envelope] = listener.heard()
    message = json.loads(envelope["Message"])
    assert (message["state"], message["subject"]) == ("ABORTED", "Pipeline copying failed")
    assert message["link"].endswith(f"/executions/details/{execution}")
    assert message["run"] == execution.rpartition(":")[2]


def test_an_interrupted_run_is_told(listener: Listener, caplog: pytest.LogCaptureFixture) -> None:
    calls = iter([caplog])

    def progress(_: object) -> None:
        for log in calls:
            interrupt(log)

    with pytest.raises(Interrupted):
        run(copying(), listener.parameters, session=listener.aws, on_progress=progress)
    [envelope] = listener.heard()
    message = json.loads(envelope["Message"])
    assert (message["state"], message["detail"]["error"]) == ("ABORTED", "Aborted")


def test_a_throttled_message_is_sent_again(listener: Listener) -> None:
    listener.aws.inject(Fault("sns", "Publish", "Throttled", "Rate exceeded", status=429, times=2))
    outcome_of(copying(), listener.parameters, session=listener.aws)
    assert len(listener.heard()) == 1


def test_a_denied_message_changes_no_run(
    listener: Listener, airflow: LocalAirflow, caplog: pytest.LogCaptureFixture
) -> None:
    refused = Fault("sns", "Publish", "AuthorizationError", "not authorized", status=403, times=1)
    listener.aws.inject(refused)
    with caplog.at_level(logging.WARNING, "orchestration.direct"):
        outcome = outcome_of(copying(), listener.parameters, session=listener.aws)
    assert outcome.state == "succeeded"
    assert f"topic {NEWS} was not told of run '{outcome.run_id}': AuthorizationError" in caplog.text
    listener.aws.inject(refused)
    ended = airflow.run(
        copying(), aws=listener.aws, parameters=listener.parameters, run_id="denied"
    )
    assert ended.state == "success"
    assert "not authorized" in ended.log
    assert listener.read() == []


def test_a_run_that_has_ended_is_told_once(listener: Listener) -> None:
    for _ in range(2):
        outcome_of(copying(), listener.parameters, session=listener.aws, run_id="again")
    assert len(listener.heard()) == 1


def test_what_a_topic_refuses_is_dropped_as_eventbridge_drops_it(listener: Listener) -> None:
    executed(listener, copying())
    assert len(listener.heard()) == 1
    listener.aws.client("sns").set_topic_attributes(
        TopicArn=NEWS,
        AttributeName="Policy",
        AttributeValue=json.dumps({"Version": "2012-10-17", "Statement": []}),
    )
    states = listener.aws.client("stepfunctions")
    execution = states.start_execution(
        stateMachineArn="arn:aws:states:us-east-1:123456789012:stateMachine:copying",
        input=json.dumps(listener.parameters),
    )["executionArn"]
    while states.describe_execution(executionArn=execution)["status"] == "RUNNING":
        time.sleep(0.05)
    time.sleep(0.5)
    assert listener.read() == []
    with pytest.raises(DeployError, match=f"topic {NEWS} does not let EventBridge publish"):
        executed(listener, copying())
    listener.allow(NEWS)


def test_a_run_on_this_machine_has_its_topics(listener: Listener) -> None:
    topic = f"{NEWS}-fresh"
    pipeline = copying(notify={"on_success": {"sns_topic": topic}})
    prepare(listener.aws, pipeline, pipeline.lower(), listener.parameters, {})
    listed = listener.aws.client("sns").list_topics()["Topics"]
    assert {"TopicArn": topic} in listed
