"""Requests that follow a call: what they need and nobody gave is taken from the call itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from orchestration.checks.requests import operation_model
from orchestration.checks.responses import shape_at


def lacking(service: str, operation: str, request: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields that an operation needs and a request to it does not have."""
    model = operation_model(service, operation)
    shape = None if model is None else model.input_shape
    for name in () if shape is None else shape.required_members:
        if name not in request:
            yield name


def answered(service: str, operation: str, fields: Iterable[str]) -> Iterator[str]:
    """Yield the fields that the response of a call has, under the same name, as one text."""
    for name in fields:
        shape = shape_at(service, operation, name)
        if shape is not None and shape.type_name == "string":
            yield name
