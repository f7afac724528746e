"""What a step takes from a response, as JSONata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from orchestration.backends.jsonata import (
    checked,
    enclosed,
    field_value,
    literal,
    path,
    quote,
    step,
)
from orchestration.expressions import Json
from orchestration.graph import Output

_TYPES = {"number": "number", "string": "string", "list": "array"}


def taken(outputs: Mapping[str, Output], root: str, step_name: str) -> dict[str, Json]:
    """The outputs of a step, for ``Assign``; a response that lacks one fails the step."""
    return {name: enclosed(_taken(output, root, step_name)) for name, output in outputs.items()}


def defaults(outputs: Mapping[str, Output]) -> dict[str, Json]:
    """The outputs of a step that got no response."""
    return {name: field_value(cast("Json", o.default)) for name, o in outputs.items() if o.optional}


def _taken(output: Output, root: str, name: str) -> str:
    value = path(root, output.path)
    parsed = f"$exists({value}) ? $parse({value})" if output.optional else f"$parse({value})"
    if output.parse:
        value = f"({parsed})" if output.optional else parsed
    where = ".".join(map(str, output.path)) or "the response"
    kind = "array" if output.columns else _TYPES.get(output.kind)
    result = _columns(output.columns) if output.columns else "$v"
    if not output.optional:
        if kind is None:
            missing = f"{name}: the response has no {where}"
            return checked(value, "$exists($v)", result, missing)
        wrong = f"{name}: {where} of the response is missing or no {output.kind}"
        return checked(value, f"$type($v) = '{kind}'", result, wrong)
    default = literal(cast("Json", output.default))
    if kind is None:
        return f"($v := {value}; $exists($v) ? $v : {default})"
    error = f"$error({quote(f'{name}: {where} of the response is no {output.kind}')})"
    return f"($v := {value}; $exists($v) ? ($type($v) = '{kind}' ? {result} : {error}) : {default})"


def _columns(columns: tuple[str, ...]) -> str:
    fields = ", ".join(f"{quote(column)}: {step(column)}" for column in columns)
    return f"[$v.{{{fields}}}]"
