"""The types of parameters, by the fields of requests that they stand in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.checks.requests import operation_model
from orchestration.checks.shapes import Shape
from orchestration.importing.steps.calls import JOBS
from orchestration.importing.steps.step import Step

_TYPES: Final = {
    **dict.fromkeys(("integer", "long", "float", "double"), "number"),
    "boolean": "boolean",
}


def types(step: Step, request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the parameters that a step's request has in the place of numbers and booleans."""
    for reference, kind in typed(step.kind, step.given, request):
        if "parameter" in reference:
            yield reference["parameter"], kind


def typed(
    kind: str, given: Mapping[str, Any], request: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield what a step of a kind has in its request in the place of numbers and booleans."""
    if kind in JOBS:
        model = operation_model("sagemaker", JOBS[kind].operation)
    elif kind == "Call":
        model = operation_model(given["Service"], given["Operation"])
    else:
        return
    if model is not None and model.input_shape is not None:
        yield from _within(model.input_shape, request)


def _within(shape: Shape, value: Any) -> Iterator[tuple[Mapping[str, Any], str]]:
    match shape.type_name, value:
        case kind, Mapping() if kind in _TYPES:
            yield value, _TYPES[kind]
        case "structure", Mapping():
            for key, item in value.items():
                if key in shape.members:
                    yield from _within(shape.members[key], item)
        case "list", list():
            for item in value:
                yield from _within(shape.member, item)
        case "map", Mapping():
            for item in value.values():
                yield from _within(shape.value, item)
