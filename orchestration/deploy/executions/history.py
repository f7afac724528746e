"""The steps of an execution, read from its events.

States are named after steps; helper states of a step have a capitalised suffix.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestration.direct.progress import StepRun, StepState
from orchestration.graph import Graph, all_steps

_HELPER: Final = re.compile(r"-[A-Z].*$")
_OF_MANY: Final = re.compile(r"-Together\d*(-|$)")
"""Named after the first of the steps that run side by side, and of none of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEvent:
    """An event of an execution, with the state that it enters or leaves, if it does."""

    id: int
    previous_id: int
    type: str
    at: datetime.datetime
    state: str | None

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> StateEvent:
        """Read an event as GetExecutionHistory tells it."""
        details = event.get("stateEnteredEventDetails") or event.get("stateExitedEventDetails")
        return cls(
            id=event["id"],
            previous_id=event.get("previousEventId", 0),
            type=event["type"],
            at=event["timestamp"],
            state=(details or {}).get("name"),
        )


@dataclass(slots=True)
class _Visits:
    """The entries into a step's states and exits from them."""

    inside: int = 0
    has_failed: bool = False
    started: datetime.datetime | None = None
    ended: datetime.datetime | None = None


def step_names(graph: Graph) -> dict[str, str]:
    """Return the steps of a graph by the states that are named after them."""
    return {step.name.replace(".", "-"): step.name for step in all_steps(graph)}


def steps(
    events: Iterable[StateEvent], names: Mapping[str, str], *, failed: bool
) -> tuple[StepRun, ...]:
    """Return the steps that were entered, in the order of their starts.

    ``names`` are the :func:`step_names`; ``failed``: whether the execution has ended badly.
    """
    visits: dict[str, _Visits] = {}
    steps_by_event: dict[int, str] = {}
    for event in events:
        if event.type == "FailStateEntered" and event.previous_id in steps_by_event:
            # Many steps go to one Fail state; the one that was left for it has failed.
            visits[steps_by_event[event.previous_id]].has_failed = True
        step = None if event.state is None else _step_of(event.state, names)
        if step is None:
            continue
        steps_by_event[event.id] = step
        at = visits.setdefault(step, _Visits())
        if event.type.endswith("Entered"):
            at.inside += 1
            at.started = at.started or event.at
        else:
            at.inside -= 1
        at.ended = event.at
    return tuple(
        StepRun(
            step,
            _state(at, failed=failed),
            at.started,
            at.ended if at.inside <= 0 or failed else None,
        )
        for step, at in visits.items()
    )


def _state(at: _Visits, *, failed: bool) -> StepState:
    if failed and at.has_failed:
        return "failed"
    if at.inside <= 0:
        return "succeeded"
    return "failed" if failed else "running"


def _step_of(state: str, names: Mapping[str, str]) -> str | None:
    if _OF_MANY.search(state):
        return None
    return names.get(state) or names.get(_HELPER.sub("", state, count=1))
