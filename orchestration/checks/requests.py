"""Requests against botocore's shapes: missing, unknown, types, bounds, patterns, enums.

botocore's own validator checks missing, unknown, types and minima; the models carry maxima,
patterns and enums too. Reading them needs no client, credentials or region. A value that is not
known yet (an expression) is checked as far as its known parts allow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from orchestration.checks.patterns import matches
from orchestration.checks.shapes import OperationModel, Shape, service_model, service_names
from orchestration.errors import Problem, meant, near
from orchestration.expressions import Item, Join, Run, RunAttempt, Tree
from orchestration.refs import FORMS, Expression, parse

_SAMPLE_RUN = "0123456789ab"
_LINE_BREAKS = re.compile(r"[\n\r\x85\u2028\u2029]")
"""Characters that ``.`` does not match in the dialect of AWS's patterns."""
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "structure": Mapping,
    "list": Sequence,
    "map": Mapping,
    "string": str,
    "integer": int,
    "long": int,
    "float": (int, float),
    "double": (int, float),
    "boolean": bool,
    "timestamp": (str, int, float),
}
_MOST_SHOWN = 200
"""Characters of a value in a message; AWS's names and URIs are shorter."""


@cache
def operation_model(service: str, operation: str) -> OperationModel | None:
    """Botocore's model of an operation, ``None`` where there is no such service or operation."""
    model = service_model(service)
    return None if model is None else model.operation(operation)


def operation_names(service: str) -> tuple[str, ...]:
    """All operations of a service, empty where there is no such service."""
    model = service_model(service)
    return () if model is None else tuple(model.operations)


def violations(service: str, operation: str, request: Mapping[str, Tree]) -> list[Problem]:
    """Everything about a request that AWS would refuse, each with its path in the request."""
    model = operation_model(service, operation)
    if model is None:
        known = near(operation, operation_names(service))
        if not operation_names(service):
            close = meant(service, service_names())
            return [Problem("", f"botocore knows no service {service!r}{close}")]
        return [Problem("", f"botocore knows no operation {operation} of {service}{known}")]
    if model.input_shape is None:
        return [Problem(key, "the operation takes no fields") for key in request]
    return list(_value(model.input_shape, request, ""))


def has_output(service: str, operation: str, path: Sequence[str | int]) -> bool:
    """Return whether a response of the operation can have a value at a path."""
    model = operation_model(service, operation)
    shape = model.output_shape if model is not None else None
    for part in path:
        if shape is None:
            return False
        if shape.type_name == "structure":
            shape = shape.members.get(str(part))
        elif shape.type_name == "list":
            shape = shape.member if isinstance(part, int) else None
        elif shape.type_name == "map":
            shape = shape.value
        else:
            return False
    return shape is not None


def places(
    service: str, operation: str, request: Mapping[str, Tree]
) -> Iterator[tuple[str, str, Expression[object]]]:
    """Yield the expressions in a request: path, the type that botocore requires, the expression."""
    for path, shape, value in _leaves(service, operation, request):
        if isinstance(value, Expression):
            yield path, shape.type_name, value


def has_types(service: str, operation: str, request: Mapping[str, Tree]) -> bool:
    """Return whether the values of a request that the model knows are of the model's types."""
    return all(
        isinstance(value, _TYPES.get(shape.type_name, object))
        for _, shape, value in _leaves(service, operation, request)
    )


def texts_for_bytes(
    service: str, operation: str, request: Mapping[str, Tree], is_text: Callable[[Tree], bool]
) -> Iterator[str]:
    """Yield where a request has text and the API takes bytes, by the paths."""
    for path, shape, value in _leaves(service, operation, request):
        if shape.type_name == "blob" and (isinstance(value, bytes) or is_text(value)):
            yield path


def _leaves(
    service: str, operation: str, request: Mapping[str, Tree]
) -> Iterator[tuple[str, Shape, Tree]]:
    """Yield the values in a request that hold no others that botocore's model knows of."""
    model = operation_model(service, operation)
    if model is not None and model.input_shape is not None:
        yield from _leaves_of(model.input_shape, request, "")


def _leaves_of(shape: Shape, value: Tree, path: str) -> Iterator[tuple[str, Shape, Tree]]:
    if isinstance(value, Mapping) and shape.type_name in ("structure", "map"):
        for key, item in value.items():
            inner = _member(shape, key)
            if inner is not None:
                yield from _leaves_of(inner, item, f"{path}.{key}" if path else key)
    elif shape.type_name == "list" and isinstance(value, Sequence) and not isinstance(value, str):
        for index, item in enumerate(value):
            yield from _leaves_of(shape.member, item, f"{path}[{index}]")
    else:
        yield path, shape, value


def unknown_fields(service: str, operation: str, request: Mapping[str, Tree]) -> Iterator[str]:
    """Yield the fields of a request that the installed botocore does not know, by their paths.

    It refuses them itself, but only once the request is sent.
    """
    model = operation_model(service, operation)
    if model is None:
        yield ""
    elif model.input_shape is not None:
        yield from _unknown_fields(model.input_shape, request, "")


def _unknown_fields(shape: Shape, value: Tree, path: str) -> Iterator[str]:
    if isinstance(value, Expression):
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            inner, below = _member(shape, key), f"{path}.{key}" if path else key
            if inner is not None:
                yield from _unknown_fields(inner, item, below)
            elif shape.type_name == "structure":
                yield below
    elif shape.type_name == "list" and isinstance(value, Sequence) and not isinstance(value, str):
        for index, item in enumerate(value):
            yield from _unknown_fields(shape.member, item, f"{path}[{index}]")


def _member(shape: Shape, key: str) -> Shape | None:
    if shape.type_name == "structure":
        return shape.members.get(key)
    return shape.value if shape.type_name == "map" else None


def _value(  # noqa: C901 - one arm for each type of shape
    shape: Shape, value: Tree, path: str
) -> Iterator[Problem]:
    if isinstance(value, Expression):
        yield from _expression(shape, value, path)
        return
    match shape.type_name:
        case "structure":
            yield from _structure(shape, value, path)
        case "list":
            yield from _list(shape, value, path)
        case "map":
            yield from _map(shape, value, path)
        case "string":
            yield from _string(shape, value, path)
        case "integer" | "long" | "float" | "double":
            yield from _number(shape, value, path)
        case "boolean":
            if not isinstance(value, bool):
                yield _wrong(path, "true or false", value)
        case "blob":
            # Text or bytes as they are, anything else as its JSON.
            pass
        case "timestamp":
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                yield _wrong(path, "a time", value)
        case other:
            yield Problem(path, f"botocore's type {other} is not checked here")


def _wrong(path: str, expected: str, value: object) -> Problem:
    if isinstance(value, Mapping) and len(value) == 1 and set(value) <= set(FORMS):
        try:
            parse(value)
        except ValueError as error:
            return Problem(path, str(error))
    return Problem(path, f"expected {expected}, not {value!r}")


def _structure(shape: Shape, value: Tree, path: str) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield _wrong(path, "an object", value)
        return
    prefix = f"{path}." if path else ""
    for name in shape.required_members:
        if name not in value:
            yield Problem(f"{prefix}{name}", "is required", rule="not be null")
    if shape.is_tagged_union and len(value) != 1:
        yield Problem(path, f"takes exactly one of {', '.join(shape.members)}")
    for name, item in value.items():
        if name in shape.members:
            yield from _value(shape.members[name], item, f"{prefix}{name}")
        else:
            yield Problem(f"{prefix}{name}", f"is unknown{near(str(name), shape.members)}")


def _list(shape: Shape, value: Tree, path: str) -> Iterator[Problem]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        yield _wrong(path, "a list", value)
        return
    yield from _bounds(shape, len(value), path, "entries")
    for index, item in enumerate(value):
        yield from _value(shape.member, item, f"{path}[{index}]")


def _map(shape: Shape, value: Tree, path: str) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield _wrong(path, "an object", value)
        return
    yield from _bounds(shape, len(value), path, "entries")
    for key, item in value.items():
        for problem in _string(shape.key, key, f"{path} key {key!r}"):
            yield replace(problem, rule="")  # Its field is no place in the request.
        yield from _value(shape.value, item, f"{path}.{key}")


def _string(shape: Shape, value: Tree, path: str) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield _wrong(path, "text", value)
        return
    size = list(_bounds(shape, len(value), path, "characters"))
    allowed, pattern = shape.metadata.get("enum"), shape.metadata.get("pattern")
    if size:
        yield from size
    elif allowed and value not in allowed:
        rule = f"satisfy enum value set: [{', '.join(allowed)}]"
        yield Problem(path, f"AWS does not know {value!r} here{near(value, allowed)}", rule=rule)
    elif pattern is not None and not matches(pattern, value):
        if (expected := shape.metadata.get("expected")) is not None:
            # The pattern is ours, so AWS does not speak of it.
            yield Problem(path, f"expected {expected}, got {_shown(value)}")
            return
        broken = _LINE_BREAKS.search(value)
        alone = broken and matches(pattern, _LINE_BREAKS.sub(" ", value))
        does = "has a line break, and so does not" if alone else "does not"
        rule = f"satisfy regular expression pattern: {pattern}"
        yield Problem(path, f"{_shown(value)} {does} match AWS's pattern {pattern}", rule=rule)


def _shown(value: str) -> str:
    return repr(value) if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN]!r}…"


def _number(shape: Shape, value: Tree, path: str) -> Iterator[Problem]:
    whole = shape.type_name in ("integer", "long")
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        yield _wrong(path, "a whole number" if whole else "a number", value)
        return
    if isinstance(value, float) and not math.isfinite(value):
        yield _wrong(path, "a number that JSON has", value)
        return
    yield from _bounds(shape, value, path, "")


def _bounds(shape: Shape, size: float, path: str, unit: str) -> Iterator[Problem]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    is_now = f"has {size} {unit}" if unit else f"is {size}"
    what = "length" if unit else "value"
    if least is not None and size < least:
        rule = f"have {what} greater than or equal to {least}"
        yield Problem(path, f"{is_now}; the least is {least}", rule=rule)
    if most is not None and size > most:
        rule = f"have {what} less than or equal to {most}"
        yield Problem(path, f"{is_now}; the most is {most}", rule=rule)


def _expression(shape: Shape, value: Expression[object], path: str) -> Iterator[Problem]:
    match value:
        case Join(parts) if shape.type_name == "string":
            if all(isinstance(part, str | Run | RunAttempt) for part in parts):
                sample = "".join(map(_sample, parts))
                yield from _string(shape, sample, path)
                return
            most = shape.metadata.get("max")
            known = sum(len(p) if isinstance(p, str) else _shortest(p) for p in parts)
            if most is not None and known > most:
                yield Problem(path, f"has at least {known} characters; the most is {most}")
        case Join() | Run() | RunAttempt():
            if shape.type_name not in ("string", "blob"):
                yield Problem(path, f"is text where the API takes another type: {shape.type_name}")
        case _:
            pass


def _sample(part: str | Expression[object]) -> str:
    if isinstance(part, str):
        return part
    return f"{_SAMPLE_RUN}-99" if isinstance(part, RunAttempt) else _SAMPLE_RUN


def _shortest(part: Expression[object]) -> int:
    from orchestration.expressions import Apply, Function

    match part:
        case Run() | RunAttempt() | Apply(Function.HASH, _):
            return 12
        case Item():
            return 1
        case _:
            return 0
