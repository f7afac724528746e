"""A request to an API as a Task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestration.backends.jsonata import render, tree
from orchestration.backends.jsonata.writing import checked, enclosed
from orchestration.backends.stepfunctions.calls import recognition, texts
from orchestration.backends.stepfunctions.integrations import spelling
from orchestration.backends.stepfunctions.integrations.choosing import optimised
from orchestration.backends.stepfunctions.integrations.services import resource
from orchestration.backends.stepfunctions.names import Scope
from orchestration.backends.stepfunctions.states import State
from orchestration.checks.requests import operation_model
from orchestration.checks.shapes import Shape
from orchestration.expressions import Json, Tree
from orchestration.graph import Operation, Retry, stage_of


def task(
    operation: Operation,
    scope: Scope,
    retry: Retry,
    *,
    step: str,
    unnamed: bool = True,
    sync: bool = False,
) -> State:
    """Return a Task that sends a request, and again while the error is one that passes.

    ``step``: the one that sends it. ``unnamed``: whether errors without their own name count as
    such. ``sync``: whether it waits for the end of the job that it starts.
    """
    arn = resource(operation.service, operation.name)
    state: State = {
        "Type": "Task",
        "Resource": optimised(operation) if sync else arn,
        "Arguments": _Arguments(operation, step, scope).written(),
    }
    if operation.assumes is not None:
        state["Credentials"] = {"RoleArn": tree(operation.assumes, scope)}
    retriers = recognition.retriers(operation, retry, unnamed=unnamed)
    if retriers:
        state["Retry"] = retriers
    return state


@dataclass(frozen=True)
class _Arguments:
    """The request of a Task; a field that takes bytes fails it where it is text after all."""

    operation: Operation
    step: str
    scope: Scope

    def written(self) -> Json:
        """Return the fields of the request."""
        model = operation_model(self.operation.service, self.operation.name)
        shape = None if model is None else model.input_shape
        return self._part(shape, self.operation.request, "")

    def _part(self, shape: Shape | None, value: Tree, path: str) -> Json:
        if shape is None:
            return tree(value, self.scope)
        if isinstance(value, Mapping) and not any(key.endswith(".$") for key in value):
            return self._members(shape, value, f"{path}." if path else "")
        if isinstance(value, list | tuple) and shape.type_name == "list":
            member = shape.member
            return [self._part(member, item, f"{path}[{n}]") for n, item in enumerate(value)]
        return self._checked(value, tuple(texts.sought(shape, value, path, self.scope.facts)))

    def _members(self, shape: Shape, value: Mapping[str, Tree], prefix: str) -> Json:
        names = {key: spelling.original(shape, key) for key in value}
        return {
            key: self._part(names[key][1], item, f"{prefix}{names[key][0]}")
            for key, item in value.items()
        }

    def _checked(self, value: Tree, sought: tuple[texts.Sought, ...]) -> Json:
        if not sought:
            return tree(value, self.scope)
        asked = f"stage {stage_of(self.step)}: {self.operation.service}:{self.operation.name}"
        code = render(value, self.scope)
        for path, kinds in sought:
            wrong = f"{path} is text, which Step Functions sends as JSON, in quotes"
            message = f"{asked}: {wrong}; give JSON instead"
            code = checked(code, f"$not('string' in {kinds})", "$v", message)
        return enclosed(code)
