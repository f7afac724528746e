"""Executions of a pipeline's state machine, and the progress of one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestration.deploy import executions
from orchestration.deploy.account import Clients
from orchestration.deploy.executions.history import StateEvent, step_names, steps
from orchestration.deploy.executions.runs import begun, found
from orchestration.direct.stages import RunState
from orchestration.expressions import Json
from orchestration.runs.asking import asking
from orchestration.runs.operating import Again, Listed, Started, Stopped
from orchestration.runs.progress import Progress

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

_PAGE = 1000


class Executions:
    """The executions of a deployed pipeline's state machine."""

    id_key = "execution_arn"

    def __init__(self, pipeline: str, session: Clients) -> None:
        self._pipeline = pipeline
        self._session = session

    def listed(self, most: int) -> Sequence[Listed]:
        """List them, the newest first."""
        return [
            Listed(
                id=each.arn,
                name=each.name,
                status=each.status,
                started=each.started,
                ended=each.ended,
                error=each.error,
                cause=each.cause,
            )
            for each in executions.listed(self._pipeline, session=self._session, most=most)
        ]

    def start(self, pipeline: Pipeline, values: Mapping[str, Json], run: str | None) -> Started:
        """Start one with these values of parameters."""
        started = executions.start(pipeline, values, session=self._session, run=run)
        return Started(id=started.arn, warnings=started.warnings)

    def stop(self, run: str) -> Stopped:
        """Stop one, and let the companion stop and delete what it has left."""
        stopped = executions.stop(run, session=self._session)
        return Stopped(id=stopped.arn, was_running=stopped.was_running)

    def rerun(self, run: str) -> Again:
        """Start a failed one again, as the next attempt at its run."""
        again = executions.rerun(run, session=self._session)
        return Again(id=again.arn, run=again.run, attempt=again.attempt)

    def watched(self, pipeline: Pipeline, run: str) -> Execution:
        """Return one to be looked at."""
        return Execution(pipeline, run, self._session)


class Execution:
    """An execution that is looked at again and again; events that are known are not read again."""

    def __init__(self, pipeline: Pipeline, run: str, session: Clients) -> None:
        self._states = session.client("stepfunctions")
        self._execution = found(pipeline.name, run, session)
        with asking(f"executions of {pipeline.name}"):
            self._begun = begun(self._states, self._execution)
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
            begun=self._begun,
            ended=described.get("stopDate"),
            error=described.get("error") or ("" if state != "failed" else described["status"]),
            cause=described.get("cause", ""),
            steps=steps(self._events, self._names, failed=state == "failed"),
            parameters=self._execution.input,
            outputs=_outputs(described),
            transitions=_transitions(self._events),
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


def _transitions(events: Sequence[StateEvent]) -> int:
    """Count the states that were entered, and the tasks that were tried again."""
    seen = Counter(event.type for event in events)
    entered = sum(count for kind, count in seen.items() if kind.endswith("StateEntered"))
    return entered + max(0, seen["TaskScheduled"] - seen["TaskStateEntered"])


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
