"""The order of runs that begin together, and of those whose tasks a person clears."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import ErrorType
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import (
    ErrorResponse,
    GetVariable,
    PutVariable,
    VariableResult,
)

from orchestration.airflow.dags.superseding import Turn

pytestmark = pytest.mark.xdist_group("airflow")


class Supervisor:
    """A worker's supervisor, and the runs of a DAG that Airflow knows."""

    def __init__(self, **runs: str) -> None:
        self.runs = runs
        self.value: str | None = None

    def send(self, message: GetVariable | PutVariable) -> VariableResult | ErrorResponse | None:
        if isinstance(message, PutVariable):
            self.value = message.value
            return None
        if self.value is None:
            return ErrorResponse(error=ErrorType.VARIABLE_NOT_FOUND)
        return VariableResult(key=message.key, value=self.value)

    def get_dr_count(self, *, dag_id: str, run_ids: list[str] | None, states: list[str]) -> int:
        assert dag_id == "d"
        asked = self.runs if run_ids is None else {*run_ids} & self.runs.keys()
        return sum(self.runs[run] in states for run in asked)

    def turn(self, run_id: str, *, cleared: int = 0, **fields: Any) -> Turn:
        context: Mapping[str, Any] = {
            "ti": self,
            "dag": SimpleNamespace(dag_id="d"),
            "run_id": run_id,
            "dag_run": SimpleNamespace(clear_number=cleared),
        }
        return Turn(context, **fields)  # type: ignore[arg-type]  # what a turn reads of it


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    made = Supervisor(a="running", b="running")
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", made, raising=False)
    return made


def comes(turn: Turn) -> bool:
    """Look as a task does; the run must not be superseded."""
    assert turn.newer() is None
    return turn.has_come()


def test_of_two_that_begin_at_the_same_moment_one_goes_on(supervisor: Supervisor) -> None:
    """Each has read the variable before the other one wrote it."""
    a, b = (supervisor.turn(run, starts=True) for run in "ab")
    assert (a.newer(), b.newer()) == (None, None)
    assert (a.has_come(), b.has_come()) == (False, False)
    assert not comes(a), "what it wrote is lost, so it writes again"
    assert b.newer() == "a"
    supervisor.runs["b"] = "failed"
    assert comes(a)


def test_a_run_that_was_deleted_holds_up_nobody(supervisor: Supervisor) -> None:
    comes(supervisor.turn("a", starts=True))
    comes(supervisor.turn("b", starts=True))
    del supervisor.runs["b"]
    assert comes(supervisor.turn("a"))


def test_a_run_begins_after_one_that_has_not_said_so(supervisor: Supervisor) -> None:
    a = supervisor.turn("a", starts=True)
    assert not comes(a), "b runs, and may pay"
    assert not comes(supervisor.turn("b", starts=True))
    assert a.newer() == "b"


def test_a_run_that_is_cleared_gives_way_to_a_newer_one(supervisor: Supervisor) -> None:
    supervisor.runs["a"] = "failed"
    assert comes(supervisor.turn("b", starts=True))
    supervisor.runs["a"] = "running"
    assert supervisor.turn("a", cleared=1).newer() == "b"
    assert supervisor.turn("a", cleared=1, starts=True).newer() == "b"


def test_a_run_that_is_cleared_is_the_newest_when_none_is_under_way(
    supervisor: Supervisor,
) -> None:
    supervisor.runs["b"] = "queued"
    assert comes(supervisor.turn("a", starts=True))
    supervisor.runs |= {"a": "failed", "b": "running"}
    assert comes(supervisor.turn("b", starts=True))
    supervisor.runs |= {"a": "running", "b": "failed"}
    assert comes(supervisor.turn("a", cleared=1))
    supervisor.runs["b"] = "running"
    assert supervisor.turn("b", cleared=1).newer() == "a"
    assert supervisor.turn("b").newer() == "a"
