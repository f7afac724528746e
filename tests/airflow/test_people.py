"""A question stands among Airflow's required actions, and an answer there is the run's."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from airflow.models.hitl import HITLDetail
from airflow.providers.standard.triggers.hitl import HITLTriggerEventSuccessPayload
from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.exceptions import TaskDeferred
from airflow.sdk.execution_time.comms import CreateHITLDetailPayload
from airflow.sdk.execution_time.hitl import HITLUser
from airflow.sdk.execution_time.supervisor import set_supervisor_comms

from orchestration import Pipeline
from orchestration.airflow import dag
from orchestration.direct.answering import answer
from orchestration.local import EmbeddedAws, Fault
from tests.airflow.conftest import TaskInstance

QUESTION = "Deploy {{ ds }}?"


class Comms:
    """The worker's side of the line to Airflow: what a task sends over it."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, msg: Any) -> None:
        self.sent.append(msg)


@pytest.fixture(scope="module")
def account() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.001) as aws:
        aws.client("s3").create_bucket(Bucket="bucket")
        yield aws


@pytest.fixture
def deferred(account: EmbeddedAws, monkeypatch: pytest.MonkeyPatch, request: Any) -> Any:
    """The task that asks, its context, and how it was deferred."""
    for name, value in account.environment().items():
        if name.startswith(("AWS_", "ORCHESTRATION_", "NO_PROXY", "no_proxy")):
            monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", "aws://")
    monkeypatch.setenv("ORCHESTRATION_TIME_SCALE", "0.001")
    monkeypatch.setattr(ExecutorSafeguard, "test_mode", True)
    made = dag(
        Pipeline.parse(
            {
                "name": "ship",
                "region": "us-east-1",
                "workspace": "s3://bucket/runs",
                "stages": {"ok": {"kind": "approval", "question": QUESTION}},
            }
        )
    )
    task: Any = made.get_task("ok").prepare_for_execution()
    ti = TaskInstance(try_number=1, max_tries=2, id=uuid4(), task_id="ok")
    params = {"role": "role"}
    context: Any = {"ti": ti, "task": task, "dag": made, "run_id": request.node.name}
    context["params"] = params
    task.render_template_fields(context)
    comms = Comms()
    with set_supervisor_comms(comms), pytest.raises(TaskDeferred) as deferral:
        task.execute(context)
    return task, context, comms.sent, dict(deferral.value.kwargs or {})


def said(option: str, comment: str) -> dict[str, Any]:
    """What Airflow resumes a task with that a person has answered."""
    moment = datetime.datetime(2026, 11, 22, 9, 30, tzinfo=datetime.UTC)
    detail = HITLDetail(
        chosen_options=[option],
        params_input={"comment": comment},
        responded_at=moment,
        responded_by={"id": "7", "name": "ada"},
    )
    if hasattr(detail, "as_resume_event_payload"):
        return detail.as_resume_event_payload()
    # Before 3.3, a trigger of the standard provider resumes the task.
    by = HITLUser(id="7", name="ada")
    return dict(
        HITLTriggerEventSuccessPayload(
            chosen_options=[option],
            params_input=detail.params_input,
            responded_by_user=by,
            responded_at=moment,
            timedout=False,
        )
    )


def stands(account: EmbeddedAws, request: Any) -> dict[str, Any]:
    s3 = account.client("s3")
    listed = s3.list_objects_v2(Bucket="bucket", Prefix="runs/")["Contents"]
    newest = max(listed, key=lambda item: item["LastModified"])
    body = s3.get_object(Bucket="bucket", Key=newest["Key"])["Body"].read()
    return dict(json.loads(body))


def test_an_answer_in_the_ui_is_the_run_s(
    deferred: Any, account: EmbeddedAws, request: Any
) -> None:
    task, context, sent, kwargs = deferred
    [shown] = sent
    assert isinstance(shown, CreateHITLDetailPayload)
    assert (shown.subject, shown.options) == (QUESTION, ["Approve", "Reject"])
    assert str(shown.body).startswith("Or: `orchestrate approve s3://bucket/runs/")
    task.execute_complete(context, event=said("Approve", "gut"), **kwargs)
    answer = stands(account, request)
    assert (answer["state"], answer["comment"]) == ("approved", "gut")
    assert (answer["by"], answer["at"]) == ("airflow:ada", "2026-11-22T09:30:00Z")


def test_an_answer_in_the_ui_comes_after_one_that_was_first(
    deferred: Any, account: EmbeddedAws, request: Any
) -> None:
    task, context, sent, kwargs = deferred
    words = sent[0].body.strip("`").split()
    answer(words[-2], "ok", "approved", session=account, comment="first")
    task.execute_complete(context, event=said("Reject", "late"), **kwargs)
    assert stands(account, request)["comment"] == "first"


def test_an_answer_that_s3_refuses_is_asked_for_again(deferred: Any, account: EmbeddedAws) -> None:
    task, context, _, kwargs = deferred
    denied = Fault("s3", "PutObject", "AccessDenied", "not yours", status=403)
    account.inject(denied)
    comms = Comms()
    with set_supervisor_comms(comms), pytest.raises(TaskDeferred):
        task.execute_complete(context, event=said("Approve", "gut"), **kwargs)
    assert [message.subject for message in comms.sent] == [QUESTION]
