"""The texts of :mod:`orchestration.execution.wording` as JSONata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias, cast

from orchestration.backends.jsonata import Names, render
from orchestration.execution import wording
from orchestration.execution.wording import parts
from orchestration.expressions import Apply, Function, apply, join
from orchestration.graph import Operation
from orchestration.refs import Expression

Words: TypeAlias = Sequence[str | Expression[object]]
"""Text, and expressions of the workflow, for a hole of a text."""


class Raw(NamedTuple):
    """JSONata for a hole of a text."""

    text: str


MESSAGE: Final = Raw("$substringBefore($states.input.Cause, ' (Service:')")
"""The message of the error in a state's input, without what Step Functions adds to it."""


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
