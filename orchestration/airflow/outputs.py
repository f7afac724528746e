"""Outputs of a step, taken from a response."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from orchestration.errors import RunError
from orchestration.expressions import Json
from orchestration.graph import Output, Path

MISSING: Final = object()


def at(value: Json, path: Path) -> Json | object:
    """What stands at a path, or :data:`MISSING`."""
    found: Any = value
    for part in path:
        if isinstance(part, str):
            present = isinstance(found, Mapping) and part in found
        else:
            listed = isinstance(found, Sequence) and not isinstance(found, str)
            present = listed and -len(found) <= part < len(found)
        if not present:
            return MISSING
        found = found[part]
    return cast(object, found)


def taken(outputs: Mapping[str, Output], value: Json, source: str) -> dict[str, Json]:
    """All outputs, from a response or a document; ``source`` says which, for errors.

    Raises :class:`RunError` where one is absent without a default, or is not what it must be.
    """
    return {name: _one(output, value, source) for name, output in outputs.items()}


def defaults(outputs: Mapping[str, Output], source: str) -> dict[str, Json]:
    """All outputs, where there is no response that could hold any."""
    return taken(outputs, None, source)


def _one(output: Output, value: Json, source: str) -> Json:
    where = ".".join(map(str, output.path))
    found = at(value, output.path) if output.path or value is not None else MISSING
    if found is MISSING:
        if not output.optional:
            raise RunError("MissingOutput", f"{source} has no {where}")
        return cast(Json, output.default)
    result = cast(Json, found)
    if output.parse:
        result = _parsed(result, where, source)
    if not _is(result, output.kind):
        raise RunError("WrongOutput", f"{where} of {source} is no {output.kind}: {result!r}")
    return _columns(result, output.columns, where, source) if output.columns else result


def _parsed(value: Json, where: str, source: str) -> Json:
    try:
        return cast(Json, json.loads(cast(str, value)))
    except (TypeError, ValueError) as error:
        raise RunError("WrongOutput", f"{where} of {source} is no JSON text: {error}") from error


def _is(value: Json, kind: str) -> bool:
    match kind:
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "list":
            return isinstance(value, Sequence) and not isinstance(value, str)
        case _:
            return True


def _columns(value: Json, columns: tuple[str, ...], where: str, source: str) -> Json:
    rows = []
    for row in cast("Sequence[Json]", value):
        if not isinstance(row, Mapping):
            raise RunError("WrongOutput", f"{where} of {source} holds no objects: {row!r}")
        rows.append({column: row[column] for column in columns if column in row})
    return rows
