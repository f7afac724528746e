"""Results of Tasks: the fields of responses, by botocore's shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from orchestration.backends.stepfunctions.integrations.spelling import spelled
from orchestration.checks.requests import operation_model
from orchestration.checks.shapes import Shape
from orchestration.lint.machines import State
from orchestration.lint.tasks.resources import Integration, integration

_METADATA: Final = ("SdkHttpMetadata", "SdkResponseMetadata")
_DEEPEST: Final = 4
_EXECUTION: Final = ("stepfunctions", "StartExecution")


@dataclass(frozen=True, slots=True)
class Known:
    """The fields that an object can have."""

    fields: Mapping[str, Fields]
    is_open: bool = False
    """True if it can have others besides."""


Fields: TypeAlias = Known | None
"""The known fields of a value; ``None`` where none are known."""


def response(state: State) -> Fields:
    """Return the fields of a Task's result, where they are those of an API's response."""
    used = integration(state)
    return None if used is None else _known(used)


@lru_cache(maxsize=512)
def _known(used: Integration) -> Fields:
    shape = _output_shape(used)
    return None if shape is None else _fields(shape, used, _DEEPEST)


def _fields(shape: Shape, used: Integration, depth: int) -> Fields:
    while shape.type_name == "list":
        shape = shape.member
    if shape.type_name != "structure" or shape.metadata.get("document") or not depth:
        return None
    fields = {
        name: _fields(member, used, depth - 1) for name, member in _members(shape, used).items()
    }
    if depth == _DEEPEST and not used.is_sdk:
        fields |= dict.fromkeys(_METADATA)
    return Known(fields)


def _members(shape: Shape, used: Integration) -> dict[str, Shape]:
    """Return the fields of a structure in a response, by their names in Step Functions."""
    named = {spelled(name, shape.name): member for name, member in shape.members.items()}
    if used.is_sdk or used.service == "states":
        return named
    return {**named, **shape.members}


def _output_shape(used: Integration) -> Shape | None:
    """Return the shape of an integration's result, if it is that of an API."""
    if used.api is None:
        return None
    service, operation = used.api
    waits = used.pattern.startswith("sync")
    if used.api == _EXECUTION and waits:
        operation = "DescribeExecution"
    elif waits and service == "sagemaker":
        operation = operation.replace("Create", "Describe", 1)
    elif used.pattern or (service == "bedrock-runtime" and not used.is_sdk):
        return None
    model = operation_model(service, operation)
    return None if model is None else model.output_shape
