"""Places in the responses of AWS's operations, against botocore's shapes.

A place is written as people write it: ``JobRun.JobRunState``, ``Items[0].Name``; of a list,
``TaskArns[]`` is the whole of it, and ``Items[].Name`` one field of each element.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

from orchestration.checks.requests import operation_model, operation_names
from orchestration.checks.shapes import Shape, service_names
from orchestration.errors import Problem, meant, near

Kind: TypeAlias = Literal["any", "number", "string"]

_KINDS: Final[Mapping[str, Kind]] = {
    "string": "string",
    "timestamp": "string",
    "integer": "number",
    "long": "number",
    "float": "number",
    "double": "number",
    "boolean": "any",
}


def path_to(place: str) -> tuple[str | int, ...]:
    """Return the parts of a place: ``Items[0].Name`` has ``Items``, 0 and ``Name``."""
    parts = re.findall(r"[^.\[\]]+|\[\d+\]", place)
    return tuple(int(part[1:-1]) if part[0] == "[" else part for part in parts)


def listed(place: str) -> tuple[str, str] | None:
    """Return the place of a list and the field of its elements; ``None``: a place of one value."""
    match = re.fullmatch(r"(.+?)\[\](?:\.(\w+))?", place)
    return None if match is None else (match[1], match[2] or "")


def unknown(field: str, service: str, operation: str) -> Iterator[Problem]:
    """Yield the error of an operation that botocore does not know."""
    names = operation_names(service)
    if not names:
        close = meant(service, service_names())
        yield Problem("service", f"botocore knows no service {service!r}{close}")
    elif operation not in names:
        yield Problem(field, f"{service} has no operation {operation!r}{near(operation, names)}")


def misplaced(field: str, service: str, operation: str, place: str) -> Iterator[Problem]:
    """Yield the error of a place that responses do not have, or with more than one value."""
    model = operation_model(service, operation)
    if model is None:
        return  # Reported as an unknown operation.
    shape, missing = _walked(model.output_shape, place)
    if shape is None:
        yield Problem(field, f"responses of {operation} have no {place!r}{missing}")
    elif listed(place) is not None:
        if shape.type_name not in _KINDS or shape.type_name in ("boolean", "timestamp"):
            inside = near("", shape.members) if shape.type_name == "structure" else ""
            yield Problem(field, f"{place!r} are no texts or numbers{inside}")
    elif shape.type_name not in _KINDS:
        inside = near("", shape.members) if shape.type_name == "structure" else ""
        wanted = f"name a text, number or boolean{inside}{_all(shape)}"
        yield Problem(field, f"{place!r} is a {shape.type_name}; {wanted}")


def _all(shape: Shape) -> str:
    """Return the way to take a whole list."""
    if shape.type_name != "list":
        return ""
    return ", or all of them: <place>[], or a field of each: <place>[].<field>"


def shape_at(service: str, operation: str, place: str) -> Shape | None:
    """Return the shape at a place of an operation's response, ``None`` where there is none."""
    model = operation_model(service, operation)
    return None if model is None else _walked(model.output_shape, place)[0]


def kind_at(service: str, operation: str, place: str) -> Kind:
    """Return the type of the value at a place of an operation's response."""
    shape = shape_at(service, operation, place)
    return "any" if shape is None else _KINDS.get(shape.type_name, "any")


def _walked(shape: Shape | None, place: str) -> tuple[Shape | None, str]:
    """Return the shape at a place; where there is none, the way out of a misspelling."""
    parts = path_to(place)
    if (found := listed(place)) is not None:
        items, name = found
        parts = (*path_to(items), 0, *([name] if name else []))
    for part in parts:
        inner = None if shape is None else _inside(shape, part)
        if inner is None:
            names = () if shape is None or shape.type_name != "structure" else shape.members
            return None, near(str(part), names)
        shape = inner
    return shape, ""


def _inside(shape: Shape, part: str | int) -> Shape | None:
    match shape.type_name, part:
        case "structure", str():
            return shape.members.get(part)
        case "list", int():
            return shape.member
        case "map", str():
            return shape.value
        case _:
            return None
