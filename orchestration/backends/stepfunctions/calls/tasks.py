"""A request to an API as a Task."""

from __future__ import annotations

from orchestration.backends.jsonata import render, tree
from orchestration.backends.jsonata.writing import checked, enclosed
from orchestration.backends.stepfunctions.calls import recognition
from orchestration.backends.stepfunctions.facts import kind
from orchestration.backends.stepfunctions.integrations import spelling
from orchestration.backends.stepfunctions.integrations.choosing import optimised
from orchestration.backends.stepfunctions.integrations.services import resource
from orchestration.backends.stepfunctions.names import Scope
from orchestration.backends.stepfunctions.states import State
from orchestration.expressions import Json, Tree
from orchestration.graph import Operation, Retry
from orchestration.refs import Expression


def task(
    operation: Operation,
    scope: Scope,
    retry: Retry,
    *,
    unnamed: bool = True,
    sync: bool = False,
) -> State:
    """Return a Task that sends a request, and again while the error is one that passes.

    ``unnamed``: whether errors without their own name count as such. ``sync``: whether it waits for
    the end of the job that it starts.
    """
    arn = resource(operation.service, operation.name)
    state: State = {
        "Type": "Task",
        "Resource": optimised(operation) if sync else arn,
        "Arguments": {
            name: _argument(operation, name, value, scope)
            for name, value in operation.request.items()
        },
    }
    if operation.assumes is not None:
        state["Credentials"] = {"RoleArn": tree(operation.assumes, scope)}
    retriers = recognition.retriers(operation, retry, unnamed=unnamed)
    if retriers:
        state["Retry"] = retriers
    return state


def _argument(operation: Operation, name: str, value: Tree, scope: Scope) -> Json:
    """Return a field of a request; one that takes bytes fails where it is text after all."""
    unknown = isinstance(value, Expression) and kind(value, scope.facts) == "any"
    if not unknown or not spelling.takes_bytes(operation, name):
        return tree(value, scope)
    message = f"{name} is text, which Step Functions sends as JSON, in quotes; give JSON instead"
    test = "$type($v) != 'string'"
    return enclosed(checked(render(value, scope), test, "$v", message))
