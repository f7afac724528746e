"""An asynchronous endpoint's smoke test: however late an error is written, the run tells it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestration.errors import RunError
from orchestration.execution.effects import Request, ServiceError
from orchestration.execution.places import Attempt
from orchestration.execution.scope import Scope
from orchestration.execution.steps import performed
from orchestration.expressions.evaluate import Values
from orchestration.graph import Graph
from orchestration.refs import join
from orchestration.stages.endpoints.cases import SmokeTest
from orchestration.stages.hosting.fields import Asynchronous
from orchestration.stages.hosting.queueing import Queued
from tests.performances.scripted import Answer, ScriptedEdge, perform

NEVER = float("inf")


class Endpoint(ScriptedEdge):
    """S3 and an endpoint that writes an answer and an error after some seconds."""

    def __init__(self, answer_s: float, failure_s: float) -> None:
        super().__init__(self._answer)
        self._written = {"answer": answer_s, "failure": failure_s}
        self._bodies = {"answer": json.dumps({"label": "cat"}), "failure": "out of memory"}

    def _answer(self, request: Request) -> Answer:
        if request.operation == "InvokeEndpointAsync":
            return {"OutputLocation": "s3://b/answer", "FailureLocation": "s3://b/failure"}
        if request.operation == "PutObject":
            return {}
        key = str(request.parameters["Key"])
        if self.now < self._written[key]:
            raise ServiceError("NoSuchKey", "The specified key does not exist.")
        return {"Body": self._bodies[key], "ETag": '"0"'}


def asked(endpoint: Endpoint) -> Any:
    queue = Asynchronous(output_uri="s3://b/answers", failure_uri="s3://b/failures")
    queued = Queued("deploy", SmokeTest(request=1), "shop", queue, join("s3://b/request"))
    steps = queued.steps(())
    scope = Scope(Values({}, {}))
    perform(performed(Graph(steps), scope, Attempt()), endpoint)
    return scope.result(steps[-1].name, "answer")


@pytest.mark.parametrize("after_s", [0, 29, 200, 460, 890])
def test_an_answer_is_taken_whenever_it_comes(after_s: float) -> None:
    assert asked(Endpoint(after_s, NEVER)) == {"label": "cat"}


@pytest.mark.parametrize("after_s", [0, 29, 200, 460, 890])
def test_an_error_is_told_whenever_it_comes(after_s: float) -> None:
    with pytest.raises(RunError, match="out of memory") as failed:
        asked(Endpoint(NEVER, after_s))
    assert failed.value.error == "AnswerFailed"


def test_where_neither_comes_the_answer_is_missing() -> None:
    endpoint = Endpoint(NEVER, NEVER)
    with pytest.raises(RunError, match="no answer within 900 s; the endpoint serves") as failed:
        asked(endpoint)
    assert failed.value.error == "AnswerMissing"
    assert endpoint.now >= 900
