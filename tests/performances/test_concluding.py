"""What follows the end of a body, without a clock and without a network."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from orchestration.errors import RunError
from orchestration.execution.effects import Aborted, ServiceError
from orchestration.execution.places import Attempt
from orchestration.execution.scope import Scope
from orchestration.execution.steps import performed
from orchestration.expressions import Result, join
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, Concluded, Graph, Operation, Output
from tests.performances.scripted import Answer, ScriptedEdge, answers, perform

DENIED = ServiceError("AccessDenied", "no")


def made(name: str, operation: str, value: object, **further: object) -> Call:
    request = {"Value": value}
    return Call(name=name, operation=Operation("s", operation, request), **further)  # type: ignore[arg-type]  # fields of a call


ENDING = join(
    *(Result("end", "state"), "|", Result("end", "error"), "|", Result("end", "cause"), "|"),
    *(Result("end", "attempt"),),
)
STEP = Concluded(
    name="end",
    body=Graph((made("work.call", "CreateWork", "w", outputs={"id": Output(("Id",))}),)),
    conclusion=Graph((made("note.call", "PutNote", ENDING),)),
)


@dataclass
class Ended:
    edge: ScriptedEdge
    scope: Scope
    error: RunError | Aborted | None = None

    @property
    def notes(self) -> list[object]:
        return [r.parameters["Value"] for r in self.edge.sent if r.operation == "PutNote"]


def end(work: Answer, note: Answer, *, attempt: int = 1, abort_at: str | None = None) -> Ended:
    edge = ScriptedEdge(answers({"CreateWork": work, "PutNote": note}), abort_at=abort_at)
    ended = Ended(edge, Scope(Values({}, {}, "0123456789ab", number=attempt)))
    try:
        perform(performed(Graph((STEP,)), ended.scope, Attempt()), edge)
    except (RunError, Aborted) as error:
        ended.error = error
    return ended


def test_a_success_is_concluded_and_leaves_its_results() -> None:
    ended = end({"Id": "i-1"}, {}, attempt=3)
    assert ended.error is None
    assert ended.notes == ["succeeded|||3"]
    assert ended.scope.result("work.call", "id") == "i-1"


def test_a_failure_is_concluded_with_its_error_and_cause_and_stays() -> None:
    ended = end(DENIED, {})
    assert isinstance(ended.error, RunError)
    assert ended.error.error == "AccessDenied"
    assert ended.notes == [f"failed|AccessDenied|{ended.error.cause}|1"]


@pytest.mark.parametrize(
    ("work", "error"), [({"Id": "i-1"}, "Throttling"), (DENIED, "AccessDenied")]
)
def test_a_conclusion_that_fails_hides_no_failure(work: Answer, error: str) -> None:
    ended = end(work, ServiceError("Throttled", "later"))
    assert isinstance(ended.error, RunError)
    assert ended.error.error == error


def test_nothing_is_concluded_after_an_abort() -> None:
    ended = end({"Id": "i-1"}, {}, abort_at="CreateWork")
    assert isinstance(ended.error, Aborted)
    assert ended.notes == []
