"""Values and lists that a call takes out of responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from orchestration.checks.responses import kind_at, listed, path_to
from orchestration.checks.shapes import next_page
from orchestration.expressions import Compare, Function, Result, Tree, apply
from orchestration.graph import Call, Output, Require, Step

_MORE: Final = "MoreResults"
"""The token of the next page, as an output of the call; no output of a user has this name."""


def taken(service: str, operation: str, place: str) -> Output:
    """Return the output at a place of an operation's response."""
    kind, found = kind_at(service, operation, place), listed(place)
    if found is None:
        return Output(path_to(place), kind=kind)
    items, name = found
    columns = (name,) if name else ()
    return Output(
        path_to(items),
        kind="list",
        columns=columns,
        texts=columns if kind == "string" else (),
        numbers=columns if kind == "number" else (),
        default=(),  # Where a list is empty, many services leave it out.
    )


def value(step: str, output: str, place: str) -> Tree:
    """Return an output of a call as other stages read it."""
    found, result = listed(place), Result(step, output)
    return apply(Function.COLUMN, result, found[1]) if found and found[1] else result


def followed(call: Call, results: Mapping[str, str]) -> tuple[Step, ...]:
    """Return a call and, where it gives lists, what fails if the response has only a part."""
    operation = call.operation
    lists = [name for name, place in results.items() if listed(place) is not None]
    token = next_page(operation.service, operation.name) if lists else None
    if token is None:
        return (call,)
    stage = call.name.rpartition(".")[0]
    complete = Require(
        name=f"{stage}.complete",
        condition=Compare("eq", Result(call.name, _MORE), None),
        error="MoreResults",
        cause=f"stage {stage}: {operation.name} has more results than one response holds, and the "
        "list would lack them; narrow the request",
    )
    return (
        replace(call, outputs={**call.outputs, _MORE: Output((token,), default=None)}),
        complete,
    )
