"""Outputs of a step, taken from a response."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from orchestration.errors import RunError
from orchestration.execution import wording
from orchestration.expressions import Json
from orchestration.graph import First, Output, Part

MISSING: Final = object()
LARGEST_BYTES: Final = 256 * 1024
"""The most that a state of Step Functions carries; drivers that could carry more end as it does.

https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
"""
_LARGE: Final = ("BatchGet", "Invoke", "List")
"""The beginnings of the names of operations whose responses can have as many bytes."""


def at(value: Json, path: Sequence[Part]) -> Json | object:
    """Return what stands at a path, or :data:`MISSING`."""
    inner: Any = value
    for part in path:
        inner = _inside(inner, part)
        if inner is MISSING:
            break
    return cast(object, inner)


def _inside(value: Any, part: Part) -> Any:
    """Return a part of a value, or :data:`MISSING`."""
    if isinstance(part, str):
        return value[part] if isinstance(value, Mapping) and part in value else MISSING
    if not isinstance(value, Sequence) or isinstance(value, str):
        return MISSING
    if isinstance(part, First):
        return next((each for each in value if _found(part, each)), MISSING)
    return value[part] if -len(value) <= part < len(value) else MISSING


def _found(first: First, element: Any) -> bool:
    if not isinstance(element, Mapping) or first.field not in element:
        return False
    value = element[first.field]
    # Python takes true for 1.
    return isinstance(value, bool) == isinstance(first.value, bool) and value == first.value


def may_be_large(operation: str) -> bool:
    """Return whether a response of an operation can be larger than Step Functions carries."""
    return operation.startswith(_LARGE)


def checked_response(response: Json, operation: str, subject: str) -> Json:
    """Return a response; raises :class:`RunError` where it is too large for Step Functions."""
    if may_be_large(operation):
        _check_size(response, wording.TOO_LARGE_RESPONSE, subject)
    return response


def checked_results(results: Sequence[Json], loop: str) -> list[Json]:
    """Return a loop's results; raises :class:`RunError` where Step Functions carries fewer."""
    _check_size([{"item": result} for result in results], wording.TOO_LARGE_RESULTS, loop)
    return list(results)


def too_large(text: str, source: str) -> str:
    """Return the cause of a response or of results that are too large."""
    return wording.filled(text, source=source, limit=LARGEST_BYTES)


def _check_size(value: Json, text: str, source: str) -> None:
    written = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if len(written.encode(errors="surrogatepass")) > LARGEST_BYTES:
        raise RunError(wording.DATA_LIMIT_EXCEEDED, too_large(text, source))


def taken(outputs: Mapping[str, Output], value: Json, source: str) -> dict[str, Json]:
    """Take all outputs from a response or a document; ``source`` says which, for errors.

    Raises :class:`RunError` where one is absent without a default, or is not what it must be.
    """
    return {name: _output(output, value, source) for name, output in outputs.items()}


def defaults(outputs: Mapping[str, Output], source: str) -> dict[str, Json]:
    """Return all outputs, where there is no response that could hold any."""
    return taken(outputs, None, source)


def _output(output: Output, value: Json, source: str) -> Json:
    path = ".".join(map(str, output.path)) or "the document"
    result = at(value, output.path) if output.path or value is not None else MISSING
    if result is MISSING:
        if not output.optional:
            text = wording.NO_VALUE if output.kind == "any" else wording.NOT_A
            cause = output.lacking or wording.filled(
                text, source=source, path=path, kind=output.kind
            )
            raise RunError(wording.MISSING_OUTPUT, cause)
        return cast(Json, output.default)
    taken_value = cast(Json, result)
    if output.parse:
        taken_value = _parsed(taken_value, path, source)
    if output.inside:
        within = at(taken_value, output.inside)
        if within is MISSING:
            return _output(replace(output, parse=False, inside=()), None, source)
        taken_value = cast(Json, within)
    try:
        return fitted(output, taken_value)
    except ValueError as error:
        cause = wording.filled(wording.NOT_A, path=path, source=source, kind=output.kind)
        raise RunError(wording.WRONG_OUTPUT, cause) from error


def fitted(output: Output, value: Json) -> Json:
    """Return a value as an output gives it: of a list of objects, the columns it names.

    Raises :class:`ValueError` where the value is not what the output must be.
    """
    if not _is(value, output.kind):
        raise ValueError(output.kind)
    if output.kind == "object":
        fields = cast("Mapping[str, Json]", value)
        return {name: each for name, each in fields.items() if isinstance(each, str)}
    return _columns(value, output) if output.columns else value


def _parsed(value: Json, path: str, source: str) -> Json:
    try:
        return cast(Json, json.loads(cast(str, value)))
    except (TypeError, ValueError) as error:
        cause = wording.filled(wording.NOT_JSON, source=f"{path} of {source}")
        raise RunError(wording.WRONG_OUTPUT, cause) from error


def _is(value: Json, kind: str) -> bool:
    match kind:
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "list":
            return isinstance(value, Sequence) and not isinstance(value, str)
        case "object":
            return isinstance(value, Mapping)
        case _:
            return True


def _columns(value: Json, output: Output) -> Json:
    rows = []
    for row in cast("Sequence[Json]", value):
        if not isinstance(row, Mapping):
            raise ValueError("list of objects")
        texts = all(_is(row.get(column), "string") for column in output.texts)
        if not texts or not all(_is(row.get(column), "number") for column in output.numbers):
            raise ValueError(output.kind)
        rows.append({column: row[column] for column in output.columns if column in row})
    return rows
