"""The texts of :mod:`orchestration.execution.wording` as JSONata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias, cast

from orchestration.backends.jsonata import Names, quote, render
from orchestration.execution import wording
from orchestration.execution.refusals import REFUSALS, SDK_CLIENT, SILENT
from orchestration.execution.wording import parts
from orchestration.expressions import Apply, Function, apply, join
from orchestration.graph import Operation
from orchestration.refs import Expression

Words: TypeAlias = Sequence[str | Expression[object]]
"""Text, and expressions of the workflow, for a hole of a text."""


class Raw(NamedTuple):
    """JSONata for a hole of a text."""

    text: str


_ADDED: Final = " (Service:"


def message(cause: str) -> str:
    """Return JSONata of AWS's message in a cause, without what Step Functions adds to it."""
    return f"$substringBefore({cause}, {quote(_ADDED)})"


MESSAGE: Final = Raw(message("$states.input.Cause"))
"""The message of the error in a state's input."""


def own_name(error: str) -> str:
    """Return JSONata of the name that a run has for an error; ``States.`` is the language's."""
    return f"({_NAME.format(error)} ? {quote(wording.EXPRESSION_ERROR)} : $k)"


_NAME: Final = "$k := $replace({}, /^States[.]/, ''); $k = 'QueryEvaluationError'"


def refusal_name(error: str, cause: str) -> str:
    """Return JSONata of the name in a run of an error of AWS, if there is a cause of AWS.

    As :func:`orchestration.execution.refusals.error_name`: an error that the service's model does
    not declare has the service's own name, ``S3.S3Exception``.
    """
    *known, last = REFUSALS
    rows = "".join(
        f"$contains($t, /{'|'.join(row.words)}/) ? {quote(row.error)} : " for row in known
    )
    silent = f"$b = {quote(SDK_CLIENT)} ? {quote(SILENT.error)} : $b"
    named = f"$b in [$p[0], 'Amazon' & $p[0]] ? {rows}{quote(last.error)} : {silent}"
    # The language's own names have no point once they are without `States.`.
    parts_of_name = "$p := $split($k, '.'); $b := $replace($p[1], /Exception$/, '')"
    refused = f"({parts_of_name}; $exists($t) and $exists($b) ? {named} : $k)"
    return f"($t := {cause}; {_NAME.format(error)} ? {quote(wording.EXPRESSION_ERROR)} : {refused})"


def place(operation: Operation) -> Words:
    """Return what a request is about, where the service's messages do not say it; else nothing."""
    request = dict(operation.request)
    key = "Key" if "Key" in request else "Prefix"
    match request.get("Bucket"), request.get(key):
        case Apply(Function.S3_BUCKET, (uri,)), Apply(Function.S3_KEY, (whole,)):
            # Shorter than both of its parts.
            if whole in (uri, apply(Function.DIRECTORY, uri)):
                return (" of ", cast("str | Expression[object]", whole))
    pieces = wording.place(operation.service, request)
    return [each for each in pieces if isinstance(each, str | Expression)]


def worded(text: str, names: Names, **holes: Words | Raw) -> str:
    """Return JSONata of a text with its holes filled."""
    pieces: list[str] = []
    words: list[str | Expression[object]] = []

    def put() -> None:
        if words:
            pieces.append(render(join(*words), names))
            words.clear()

    for part in parts(text, **holes):
        if isinstance(part, Raw):
            put()
            pieces.append(part.text)
        else:
            words.extend([part] if isinstance(part, str) else part)
    put()
    return " & ".join(pieces)
