"""The payload of an invocation.

A function that fails is no error of the call: the response says so in ``FunctionError``, and its
payload holds the error. https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from orchestration.checks.responses import path_to
from orchestration.errors import Problem
from orchestration.expressions import Compare, Result, Tree, join
from orchestration.graph import Call, Output, Path, Require, Step
from orchestration.refs import Expression
from orchestration.stages.calling.returned import required

FAILED: Final = "FunctionFailed"
_PAYLOAD: Final = "Payload"
# No output of a user can have these names.
_ERROR, _TYPE, _MESSAGE = "FunctionError", "ErrorType", "ErrorMessage"


def inside(place: str) -> Path | None:
    """Return the place in the payload, ``None`` for one in the rest of the response."""
    first, *rest = path_to(place) or ("",)
    return tuple(rest) if first == _PAYLOAD else None


def problems(request: Mapping[str, Any], results: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the errors of a payload that would not be the same everywhere, or is not there."""
    payload = request.get(_PAYLOAD)
    if isinstance(payload, str | Expression):
        yield Problem(
            "request.Payload",
            "expected the event as an object, which is sent as its JSON: {key: value}",
        )
    if not _waits(request):
        for name, place in results.items():
            if inside(place) is not None:
                kind = request["InvocationType"]
                message = f"an invocation of the type {kind!r} waits for no payload"
                yield Problem(f"results.{name}", message)


def followed(call: Call, results: Mapping[str, str]) -> tuple[Step, ...]:
    """Return the call with its outputs from the payload, and what fails if the function did."""
    request = call.operation.request
    if not _waits(request):
        return (call,)
    places = {name: inside(place) for name, place in results.items()}
    wanted = {name: place for name, place in places.items() if place is not None}
    outputs = {
        **call.outputs,
        **{name: _taken(place, None) for name, place in wanted.items()},
        _ERROR: Output((_ERROR,), kind="string", default=""),
        _TYPE: _taken(("errorType",), "Error"),
        _MESSAGE: _taken(("errorMessage",), ""),
    }
    name = call.name.rpartition(".")[0]
    function = request.get("FunctionName", "")
    succeeded = Require(
        name=f"{name}.succeeded",
        condition=Compare("eq", Result(call.name, _ERROR), ""),
        error=FAILED,
        cause=join(
            f"stage {name}: function ",
            _part(function),
            " failed: ",
            Result(call.name, _TYPE),
            ": ",
            Result(call.name, _MESSAGE),
        ),
        after=(call.name,),
    )
    asked = replace(call, outputs=outputs)
    subject = join(f"stage {name}: function ", _part(function))
    returned = required(asked, {each: results[each] for each in wanted}, subject, succeeded)
    return (asked, succeeded, *returned)


def _waits(request: Mapping[str, Any]) -> bool:
    """Return whether an invocation is answered when the function has ended."""
    kind: object = request.get("InvocationType", "RequestResponse")
    return kind == "RequestResponse"


def _taken(place: Path, default: str | None) -> Output:
    return Output((_PAYLOAD,), parse=True, inside=place, default=default)


def _part(tree: Tree) -> str | Expression[object]:
    return tree if isinstance(tree, str | Expression) else ""
