"""The outputs that a step takes from a response, as JSONata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast

from orchestration.backends.jsonata import (
    enclosed,
    field_value,
    literal,
    path,
    quote,
    step,
)
from orchestration.backends.stepfunctions.integrations import spelling
from orchestration.backends.stepfunctions.names import Scope, variable
from orchestration.backends.stepfunctions.wording import Words, worded
from orchestration.execution import wording
from orchestration.execution.reading.reports import NOT_FINITE
from orchestration.expressions import Json
from orchestration.graph import Call, First, Operation, Output, Part

_TYPES: Final = {"number": "number", "string": "string", "list": "array", "object": "object"}


def taken(
    outputs: Mapping[str, Output],
    operation: Operation,
    root: str,
    step_name: str,
    scope: Scope,
    *,
    source: Words = (),
) -> dict[str, Json]:
    """Return what a step assigns that got a response; one that lacks an output fails the step.

    The cause of the failure names the ``source``, by default the step.
    """
    said = source or (step_name,)
    texts = _texts(outputs, operation, root, said, scope)
    own = {name: enclosed(text) for name, text in texts.items()}
    places = {name: spelling.place(operation, output) for name, output in outputs.items()}
    raw = {name: _rows(o, places[name], root) or texts[name] for name, o in outputs.items()}
    return _assigned(own, raw, step_name, scope)


def read_at_once(step: Call, scope: Scope) -> Scope:
    """Return a scope that reads the outputs of a call in the response that its own state has."""
    texts = _texts(step.outputs, step.operation, "$states.result", (step.name,), scope)
    raw = {(step.name, name): text for name, text in texts.items()}
    return replace(scope, raw={**scope.raw, **raw})


def _texts(
    outputs: Mapping[str, Output], operation: Operation, root: str, source: Words, scope: Scope
) -> dict[str, str]:
    return {
        name: _taken(output, spelling.place(operation, output), root, _wrong(output, source, scope))
        for name, output in outputs.items()
    }


def page(
    outputs: Mapping[str, Output], operation: Operation, root: str, step_name: str, scope: Scope
) -> str:
    """Return JSONata of an object with the outputs of one page of a listing."""
    texts = {
        name: _taken(o, spelling.place(operation, o), root, _wrong(o, (step_name,), scope))
        for name, o in outputs.items()
    }
    return f"{{{', '.join(f'{quote(name)}: {text}' for name, text in texts.items())}}}"


def checked_before(
    outputs: Mapping[str, Output], root: str, step_name: str, scope: Scope
) -> dict[str, Json]:
    """Return what a step assigns from a document whose values are known to fit."""
    texts = {name: _checked_before(output, root) for name, output in outputs.items()}
    own = {name: enclosed(text) for name, text in texts.items()}
    return _assigned(own, texts, step_name, scope)


def misfit(output: Output, value: str) -> str:
    """Return the condition that a value that is there is not what it must be; empty: never."""
    kind = "array" if output.columns else _TYPES.get(output.kind)
    if kind is None:
        return ""
    if not output.optional and not output.columns:
        return f"$type({value}) != '{kind}'"
    fits = f"($v := {value}; $type($v) = '{kind}'{_rows_fit(output, _same(output))})"
    return f"$exists({value}) and $not({fits})" if output.optional else f"$not({fits})"


def at(root: str, output: Output) -> str:
    """Return JSONata of the value of an output in a document; nothing if it is missing."""
    value = path(root, output.path)
    for part in output.inside:
        value = _within(value, part)
    return value


def _checked_before(output: Output, root: str) -> str:
    value = at(root, output)
    result = f"($v := {value}; {_columns(_same(output))})" if output.columns else value
    if output.optional:
        return f"$exists({value}) ? {result} : {literal(cast('Json', output.default))}"
    if output.not_finite == "null":
        return f"{value} = {NOT_FINITE:.0e} ? null : {value}"
    return result


def given(values: Mapping[str, Json], step_name: str, scope: Scope) -> dict[str, Json]:
    """Return what a step assigns whose outputs are known without a response."""
    own = {name: field_value(value) for name, value in values.items()}
    raw = {name: literal(value) for name, value in values.items()}
    return _assigned(own, raw, step_name, scope)


def defaults(outputs: Mapping[str, Output]) -> dict[str, Json]:
    """Return the outputs of a step that got no response."""
    return {name: cast("Json", o.default) for name, o in outputs.items() if o.optional}


def _assigned(
    own: Mapping[str, Json], raw: Mapping[str, str], step_name: str, scope: Scope
) -> dict[str, Json]:
    values = scope.assigning({(step_name, name): text for name, text in raw.items()}, step_name)
    return {**({variable(step_name): dict(own)} if own else {}), **values}


def absent(outputs: Mapping[str, Output], step_name: str, scope: Scope) -> list[str]:
    """Return JSONata of the causes of failures: each output that a response must have."""
    needed = [output for output in outputs.values() if not output.optional]
    return [
        quote(output.lacking) if output.lacking else _wrong(output, (step_name,), scope)
        for output in needed
    ]


def _wrong(output: Output, source: Words, scope: Scope) -> str:
    """Return JSONata of the cause of a failure: ``$v`` is missing, or of another kind."""
    if output.lacking:
        other = _wrong(replace(output, lacking=""), source, scope)
        return f"$exists($v) ? {other} : {quote(output.lacking)}"
    text = wording.NO_VALUE if output.kind == "any" and not output.columns else wording.NOT_A
    where = ".".join(map(str, output.path)) or "the document"
    return worded(text, scope, source=source, path=(where,), kind=(output.kind,))


def _taken(output: Output, place: spelling.Place, root: str, wrong: str) -> str:
    value = path(root, place.path)
    if output.kind == "object" and not output.path:
        return value  # Every response is one.
    parsed = f"$exists({value}) ? $parse({value})" if output.optional else f"$parse({value})"
    if output.parse:
        value = f"({parsed})" if output.optional else parsed
    for part in output.inside:
        value = _within(value, part)
    kind = "array" if output.columns else _TYPES.get(output.kind)
    result = _columns(place.columns) if output.columns else "$v"
    rows = _rows_fit(output, place.columns)
    fits = "$exists($v)" if kind is None else f"$type($v) = '{kind}'{rows}"
    if not output.optional:
        return f"($v := {value}; {fits} ? {result} : $error({wrong}))"
    default = literal(cast("Json", output.default))
    if kind is None:
        return f"($v := {value}; {fits} ? $v : {default})"
    return f"($v := {value}; {fits} ? {result} : $exists($v) ? $error({wrong}) : {default})"


def _within(value: str, part: Part) -> str:
    """Return JSONata of a part of a value; a path would look into each element of a list."""
    if isinstance(part, First):
        # JSONata may take a list of one for its element, so that the type is asked for, too.
        field, wanted = f"$lookup($e, {quote(part.field)})", literal(part.value)
        same = f"$type({field}) = $type({wanted}) and {field} = {wanted}"
        finds = f"function($e) {{$type($e) = 'object' and {same}}}"
        return f"($w := {value}; $type($w) = 'array' ? $filter($w, {finds})[0])"
    if isinstance(part, int):
        return f"($w := {value}; $type($w) = 'array' ? $w[{part}])"
    return f"($w := {value}; $type($w) = 'object' ? $lookup($w, {quote(part)}))"


def _rows(output: Output, place: spelling.Place, root: str) -> str:
    """Return the rows of a list, empty where there is none; the output itself checks that."""
    plain = all(column == name for column, name in place.columns.items())
    if output.columns and plain and not output.parse and output.default in ((), []):
        return f"[{path(root, place.path)}]"
    return ""


def _same(output: Output) -> dict[str, str]:
    """Return the columns of a document, which has the names that it was written with."""
    return {column: column for column in output.columns}


def _rows_fit(output: Output, columns: Mapping[str, str]) -> str:
    kinds = {**dict.fromkeys(output.texts, "string"), **dict.fromkeys(output.numbers, "number")}
    if not kinds:
        return ""
    tests = " and ".join(
        f"$type({step(columns.get(name, name))}) = '{kind}'" for name, kind in kinds.items()
    )
    return f" and $count($v[{tests}]) = $count($v)"


def _columns(columns: Mapping[str, str]) -> str:
    fields = ", ".join(f"{quote(column)}: {step(name)}" for column, name in columns.items())
    return f"[$v.{{{fields}}}]"
