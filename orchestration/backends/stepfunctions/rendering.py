"""A workflow as an Amazon States Language definition in JSONata.

https://docs.aws.amazon.com/step-functions/latest/dg/concepts-amazon-states-language.html
There is no ``TimeoutSeconds`` for the whole: an execution that runs out of time runs no ``Catch``,
and so no clean-up. Every wait has a limit of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from orchestration.backends.jsonata import tree
from orchestration.backends.layout import indented
from orchestration.backends.origins import with_origin
from orchestration.backends.stepfunctions import control, events, limits, parameters
from orchestration.backends.stepfunctions.beginning import overlapping
from orchestration.backends.stepfunctions.facts import facts
from orchestration.backends.stepfunctions.integrations import doubts
from orchestration.backends.stepfunctions.names import Facts, Scope
from orchestration.backends.stepfunctions.owning import owned
from orchestration.backends.stepfunctions.partitions import in_region
from orchestration.backends.stepfunctions.states import State, States
from orchestration.cleanup import leftovers
from orchestration.errors import UnsupportedError
from orchestration.expressions import Json
from orchestration.graph import Workflow


def render(workflow: Workflow, *, place: str = "") -> dict[str, Json]:
    """Return the definition, ready for ``CreateStateMachine``.

    ``place`` is JSONata that tells the runs of one execution apart, where it is a part of another
    definition.

    Raises :class:`~orchestration.errors.UnsupportedError` with everything that can't be said in it.
    """
    refused = [*limits.refused(workflow), *doubts.refused(workflow)]
    if refused:
        raise UnsupportedError(refused)
    known = facts(workflow)
    definition = _definition(workflow, known, place)
    count = events.counted(definition, workflow)
    if count.most_polls < known.most_polls:
        definition = _definition(workflow, replace(known, most_polls=count.most_polls), place)
    exceeded = [*limits.exceeded(definition), *events.exceeded(count)]
    if exceeded:
        raise UnsupportedError(exceeded)
    if not workflow.origin or place:
        return definition
    told = {**definition, "Comment": with_origin(str(definition["Comment"]), workflow.origin)}
    return definition if any(limits.exceeded(told)) else told


def dumps(definition: Mapping[str, Json]) -> str:
    """Return a definition as text that reads and compares well."""
    return indented(definition)


def compact(definition: Mapping[str, Json]) -> str:
    """Return a definition as the text that is sent: AWS counts its characters."""
    return limits.sent(definition)


def _definition(workflow: Workflow, known: Facts, place: str) -> dict[str, Json]:
    states = States()
    start = _started(workflow, Scope(known, {}), states, place)
    definition: dict[str, Json] = {
        "Comment": workflow.description or workflow.name,
        "QueryLanguage": "JSONata",
        **states.machine(start),
    }
    marked = owned(definition, qualified=workflow.alias is not None)
    return in_region(marked, workflow.region)


def _started(workflow: Workflow, scope: Scope, states: States, place: str) -> str:
    writing = control.Writing(workflow.graph, scope, states, workflow.outputs, opens=True)
    done: State = {"Type": "Succeed", "Output": tree(workflow.outputs, writing.after)}
    first = writing.write(states.last("Outputs", done))
    assigned = {**scope.assigned(writing.first_values), **states.begun}
    if not place:  # A part of a larger machine has no executions of its own.
        companion = bool(leftovers(workflow.graph))
        first = overlapping.write(
            workflow.overlapping, scope, states, first, has_companion=companion
        )
    return parameters.write(workflow.parameters, assigned, states, first, place=place)
