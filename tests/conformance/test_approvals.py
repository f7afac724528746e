"""``approval`` waits for a person, and means the same on every backend."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from orchestration import Pipeline, StartError
from orchestration.deploy.executions.rerunning import token_of
from orchestration.direct.answering import answer
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, run
from orchestration.stages.people.places import Decision
from tests.conformance.sites import wait
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

DRIVERS = pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
QUESTION = "Deploy {{ ds }} für {% $x %}?"


def pipeline(**fields: Any) -> Pipeline:
    ask = {"kind": "approval", "question": QUESTION, "answer_within_h": 200, **fields}
    request = {"QueueName": {"join": ["deployed-", {"ref": "ok.comment"}]}}
    deploy = {
        "kind": "aws_call",
        "service": "sqs",
        "operation": "CreateQueue",
        "request": request,
        "results": {"queue": "QueueUrl"},
    }
    stages = {"ok": ask, "deploy": deploy}
    return Pipeline.parse(
        {"name": "ship", "region": "us-east-1", "workspace": "s3://bucket/runs", "stages": stages}
    )


def asked(aws: EmbeddedAws) -> str | None:
    """Return the place of the run that has asked."""
    s3 = aws.client("s3")
    try:
        listed = s3.list_objects_v2(Bucket="bucket", Prefix="runs/").get("Contents", [])
    except s3.exceptions.NoSuchBucket:
        return None
    keys = [item["Key"] for item in listed if item["Key"].endswith("/ok/approval.json")]
    return f"s3://bucket/{keys[0].removesuffix('/ok/approval.json')}" if keys else None


@contextmanager
def person(aws: EmbeddedAws, acts: Callable[[str], object]) -> Iterator[list[str]]:
    """Let a person act once a run has asked; yields the errors of what they did."""
    errors: list[str] = []

    def act() -> None:
        wait(lambda: asked(aws) is not None)
        try:
            acts(str(asked(aws)))
        except StartError as error:
            errors.append(str(error))

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    yield errors
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def says(aws: EmbeddedAws, decision: Decision, comment: str) -> Callable[[str], object]:
    return lambda place: answer(place, "ok", decision, session=aws, comment=comment)


def queues(aws: EmbeddedAws) -> list[str]:
    urls = aws.client("sqs").list_queues().get("QueueUrls", [])
    return [url.rpartition("/")[2] for url in urls]


@DRIVERS
def test_the_first_answer_counts_and_is_an_output(on: On, airflow: LocalAirflow) -> None:
    with EmbeddedAws(time_scale=0.003) as aws:
        with pytest.raises(StartError, match=r"has not asked for an answer \(yet\)"):
            answer("s3://bucket/runs/0123456789ab", "ok", "approved", session=aws)

        def twice(place: str) -> None:
            says(aws, "approved", "gut")(place)
            says(aws, "rejected", "too late")(place)

        with person(aws, twice) as errors:
            report = run(pipeline(), on=on, aws=aws, airflow=airflow)
        assert queues(aws) == ["deployed-gut"]
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    outputs: Any = report.outputs
    assert outputs["ok"]["approved"] is True
    assert outputs["ok"]["comment"] == "gut"
    who = outputs["ok"]["by"]
    assert who.startswith("arn:aws:")
    [refused] = errors
    at = outputs["ok"]["at"]
    assert refused.endswith(f"was approved by {who} at {at}; the first answer counts")


# What follows a gate on Airflow is in `test_a_gate_that_stops_ends_well_and_deploys_nothing`.
@pytest.mark.parametrize(
    ("on", "on_reject"),
    [
        *(("direct", end) for end in ("fail", "stop")),
        *(("step-functions", end) for end in ("fail", "stop")),
        ("airflow", "fail"),
    ],
)
def test_a_no_fails_the_run_or_leaves_out_what_follows(
    on: On, on_reject: str, airflow: LocalAirflow
) -> None:
    with EmbeddedAws(time_scale=0.003) as aws:
        with person(aws, says(aws, "rejected", "nö")):
            report = run(pipeline(on_reject=on_reject), on=on, aws=aws, airflow=airflow)
        assert queues(aws) == []
    if on_reject == "fail":
        assert (report.state, report.error) == ("failed", "Rejected")
        assert str(report.cause).startswith("stage ok: arn:aws:")
        assert str(report.cause).endswith("; comment: nö")
    else:
        assert report.state == "succeeded"
        outputs: Any = report.outputs
        assert outputs["ok"]["approved"] is False


@DRIVERS
def test_a_late_answer_counts_when_the_run_is_started_again(on: On, airflow: LocalAirflow) -> None:
    asking = pipeline(answer_within_h=1)
    with EmbeddedAws(time_scale=0.0005) as aws:
        first = run(asking, on=on, aws=aws, airflow=airflow, run_id="patient")
        assert (first.state, first.error) == ("failed", "TimedOut")
        assert first.cause == "HeadObject ok.answer: nobody answered within 3600 s"
        answer(str(asked(aws)), "ok", "approved", session=aws, comment="late")
        again = run(asking, on=on, aws=aws, airflow=airflow, run_id="patient")
        assert (again.state, queues(aws)) == ("succeeded", ["deployed-late"])
        asks = [c for c in aws.calls() if (c.request.get("Metadata") or {}).get("state") == "asked"]
        assert [call.error_code for call in asks] in (
            [None, "PreconditionFailed"],  # begun anew
            [None],  # kept in the journal
        )


def test_a_stopped_execution_is_gone_on_with_and_shows_no_token() -> None:
    with EmbeddedAws(time_scale=0.003) as aws:
        states = aws.client("stepfunctions")

        def stop(place: str) -> None:
            wait(lambda: bool(tokens(aws)))
            [machine] = states.list_state_machines()["stateMachines"]
            [execution] = states.list_executions(stateMachineArn=machine["stateMachineArn"])[
                "executions"
            ]
            assert place.endswith(f"/{token_of(execution['executionArn'], aws)}")
            states.stop_execution(executionArn=execution["executionArn"], error="Stopped")

        with person(aws, stop):
            first = run(pipeline(), on="step-functions", aws=aws, run_id="stopped")
        assert first.state == "failed"
        with person(aws, says(aws, "approved", "second")):
            again = run(pipeline(), on="step-functions", aws=aws, run_id="stopped")
        assert again.state == "succeeded"
        shown = json.dumps([again.outputs, _states(aws)], default=str)
        assert [token for token in tokens(aws) if token in shown] == []


def tokens(aws: EmbeddedAws) -> list[str]:
    """Return the tokens that stood in S3."""
    bodies = [call.request.get("Body") for call in aws.calls() if call.operation == "PutObject"]
    read = [json.loads(body) for body in bodies if body]
    return [document["token"] for document in read if "token" in document]


def _states(aws: EmbeddedAws) -> list[Any]:
    """Return what the states of all executions took and gave, and their definition."""
    states = aws.client("stepfunctions")
    shown: list[Any] = []
    for machine in states.list_state_machines()["stateMachines"]:
        arn = machine["stateMachineArn"]
        shown.append(states.describe_state_machine(stateMachineArn=arn)["definition"])
        for execution in states.list_executions(stateMachineArn=arn)["executions"]:
            events = states.get_execution_history(executionArn=execution["executionArn"])["events"]
            shown += [event for event in events if "State" in event["type"]]
    assert len(shown) > 10
    return shown


def test_a_topic_hears_of_the_question_and_the_wait_writes_few_events() -> None:
    with EmbeddedAws(time_scale=0.003) as aws:
        topic = aws.client("sns").create_topic(Name="questions")["TopicArn"]
        queue = aws.client("sqs").create_queue(QueueName="questions")["QueueUrl"]
        arn = "arn:aws:sqs:us-east-1:123456789012:questions"
        aws.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        asking = pipeline(notify={"sns_topic": topic}, answer_within_h=720)

        def thinks(place: str) -> None:
            time.sleep(1)
            says(aws, "approved", "gut")(place)

        with person(aws, thinks):
            report = run(asking, on="step-functions", aws=aws)
        assert report.state == "succeeded"
        place = asked(aws)
        [message] = aws.client("sqs").receive_message(QueueUrl=queue)["Messages"]
        looks = [call for call in aws.calls() if call.operation == "HeadObject"]
    text = json.loads(message["Body"])["Message"]
    assert text.startswith(QUESTION)
    assert f"orchestrate approve {place} ok\norchestrate reject {place} ok --comment ..." in text
    assert len(looks) == 2
