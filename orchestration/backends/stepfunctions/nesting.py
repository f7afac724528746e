"""Machines inside of a machine: what they are called, and how they fail.

What runs side by side always runs to its end. A branch or iteration therefore catches its own
error and gives it back as data, ``{"Error": …, "Cause": …}``; the run fails after the join, with
the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestration.backends.jsonata import enclosed
from orchestration.backends.stepfunctions.names import Scope, state, variable
from orchestration.backends.stepfunctions.states import State, States
from orchestration.backends.stepfunctions.wording import own_name
from orchestration.execution import wording
from orchestration.expressions import Json
from orchestration.graph import Call, ForEach, Parallel
from orchestration.graph.composition import Part, leaves, spine

# A task that timed out has no cause.
_CAUSE: Final = "{% '' & $states.errorOutput.Cause %}"
ERROR: Final[Json] = {"Error": "{% $states.errorOutput.Error %}", "Cause": _CAUSE}
"""The part of a caught error that is kept."""
ATTEMPT: Final[dict[str, Json]] = {"attempt": "{% $attempt %}"}
"""The number of the attempt at the run, for what is done after its end."""
ENDED_WELL: Final[Json] = {**wording.ending(None), **ATTEMPT}
"""The end of a run that succeeded, for what is done after it."""
ENDED_BADLY: Final[Json] = {
    **wording.ending((enclosed(own_name("$states.errorOutput.Error")), _CAUSE)),
    **ATTEMPT,
}
"""The end of a run that failed with the error that was caught."""
FIRST_ERROR: Final = "{% $exists($states.result.Error) ? $states.result[$exists(Error)][0] : {} %}"
"""The first error that branches or iterations gave back, if there is one."""


@dataclass(frozen=True, slots=True)
class Together:
    """The names of what runs side by side."""

    state: str
    results: str
    """The variable that holds the results of the steps inside."""

    @staticmethod
    def of(part: Part) -> Together:
        """Return names after the first step inside; what begins with more branches is numbered."""
        depth = spine(part)
        helper = "Together" if depth == 1 else f"Together{depth}"
        first = next(iter(leaves(part)))
        return Together(state(first, helper), variable(first, helper))

    @staticmethod
    def named(step: Parallel) -> Together:
        """Return the names of a step that says itself what runs side by side."""
        return Together(state(step.name), variable(step.name, "Results"))


def carried(holder: str, results: Sequence[str], scope: Scope) -> Scope:
    """Return a scope that sees results of steps that are held in a variable."""
    return scope.extended({step: f"${holder}.{variable(step)}" for step in results})


def tried(name: str, machine: dict[str, Json]) -> dict[str, Json]:
    """Return a machine that tries another one, and gives its error back instead of failing."""
    states = States(name)
    error = states.add(f"{name}-Caught", {"Type": "Pass"}, None)
    attempt: State = {
        "Type": "Parallel",
        "Branches": [machine],
        "Output": "{% $states.result[0] %}",
        "Catch": [{"ErrorEquals": ["States.ALL"], "Output": ERROR, "Next": error}],
    }
    return states.machine(states.add(f"{name}-Try", attempt, None))


def attempted(step: ForEach, iteration: dict[str, Json]) -> dict[str, Json]:
    """Return an iteration that gives its error back instead of failing."""
    # What users wrote, and may not evaluate, is in steps of other kinds and in other calls.
    match step.body.steps:
        case (Call(may_fail=True),):
            return given_back(iteration)
        case _:
            return tried(state(step.name), iteration)


def given_back(machine: dict[str, Json]) -> dict[str, Json]:
    """Return a machine that gives its error back, as :func:`tried`, without a state around it.

    Each of its Task states must catch everything. It writes four events fewer, of which a loop over
    a thousand checkpoints has none to spare.
    """
    states: Any = machine["States"]
    return {**machine, "States": {name: _ended(each) for name, each in states.items()}}


def _ended(state: State) -> State:
    if state["Type"] != "Fail":
        return state
    error: Json = {"Error": state["Error"], "Cause": state["Cause"]}
    return {"Type": "Pass", "Output": error, "End": True}


def caught(following: str, unless: str) -> Json:
    """Return a catcher that passes an error on, unless another one came first."""
    error = "{'Error': $states.errorOutput.Error, 'Cause': '' & $states.errorOutput.Cause}"
    output = f"{{% {unless}{error} %}}"
    return {"ErrorEquals": ["States.ALL"], "Output": output, "Next": following}
