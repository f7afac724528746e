"""Waits for people: a Task that ends when its token comes back.

The token only ends the wait: the answer itself is asked for as on every other backend. So an answer
that was given without the token, or while no Task waited, is seen at the next poll.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from orchestration.backends.jsonata import enclosed
from orchestration.backends.stepfunctions.calls.tasks import task
from orchestration.backends.stepfunctions.names import Scope
from orchestration.backends.stepfunctions.states import State
from orchestration.expressions import Json
from orchestration.graph import Call, Person, Retry, Until

_LONGEST_WAIT_S: Final = 3600
_MOST_WAITS: Final = 168
"""Waits for one answer: a week of an hour each. A longer time is divided by as many."""
_TOKEN: Final = "$states.context.Task.Token"  # noqa: S105 (the place of a token)


def interval_s(until: Until) -> int:
    """Return the seconds between two polls.

    A whole number of them is the time that a person has, up to a second for each.
    """
    if until.person is None:
        return max(1, ceil(until.interval_s))
    waits = min(_MOST_WAITS, max(1, ceil(until.timeout_s / _LONGEST_WAIT_S)))
    return max(1, ceil(until.timeout_s / waits))


def waiting(
    step: Call, person: Person, seconds: Json, scope: Scope, counted: State, poll: str
) -> State:
    """Return the Task that waits until its token comes back, or so many seconds."""
    state = task(person.token, scope, Retry(), step=step.name)
    state["Resource"] = f"{state['Resource']}.waitForTaskToken"
    arguments = state["Arguments"]
    assert isinstance(arguments, dict)  # noqa: S101 (what `task` has made)
    arguments[person.field] = {"token": enclosed(_TOKEN)}
    over: State = {"ErrorEquals": ["States.Timeout"], "Assign": counted, "Next": poll}
    return {**state, "TimeoutSeconds": seconds, "Assign": counted, "Catch": [over]}
