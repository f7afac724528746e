"""The progress of an execution of a pipeline's state machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from orchestration.deploy.account import Clients
from orchestration.deploy.executions.history import StateEvent, step_names, steps
from orchestration.deploy.executions.runs import found
from orchestration.direct.stages import RunState
from orchestration.expressions import Json
from orchestration.runs.asking import asking
from orchestration.runs.progress import Progress

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

_PAGE = 1000


class Execution:
    """An execution that is looked at again and again; events that are known are not read again."""

    def __init__(self, pipeline: Pipeline, run: str, session: Clients) -> None:
        self._states = session.client("stepfunctions")
        self._execution = found(pipeline.name, run, session)
        self._names = step_names(pipeline.lower().graph)
        self._events: list[StateEvent] = []
        self.name = self._execution.arn.partition(":execution:")[2]
        self.token = self._execution.token

    def look(self) -> Progress:
        """Ask for the state of the execution and of its steps."""
        with asking(f"execution {self._execution.arn}"):
            # The end first: what happened before it is in the history then.
            described = self._states.describe_execution(executionArn=self._execution.arn)
            self._events += reversed(list(self._new()))
        state = _STATES.get(described["status"], "failed")
        return Progress(
            state=state,
            started=described["startDate"],
            ended=described.get("stopDate"),
            error=described.get("error") or ("" if state != "failed" else described["status"]),
            cause=described.get("cause", ""),
            steps=steps(self._events, self._names, failed=state == "failed"),
            outputs=_outputs(described),
        )

    def _new(self) -> Iterator[StateEvent]:
        """Yield the events that are not known yet, the latest first."""
        last = self._events[-1].id if self._events else 0
        pages = self._states.get_paginator("get_execution_history").paginate(
            executionArn=self._execution.arn,
            reverseOrder=True,
            includeExecutionData=False,
            PaginationConfig={"PageSize": _PAGE},
        )
        for page in pages:
            for event in page["events"]:
                if event["id"] <= last:
                    return
                yield StateEvent.of(event)


_STATES: dict[str, RunState] = {
    "RUNNING": "running",
    "PENDING_REDRIVE": "running",
    "SUCCEEDED": "succeeded",
}
"""Executions in any other state have failed, timed out or were aborted."""


def _outputs(described: Any) -> dict[str, Json] | None:
    text = described.get("output")
    shown = None if text is None else json.loads(text)
    return shown if isinstance(shown, dict) else None
