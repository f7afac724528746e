"""Expressions of DynamoDB: their clauses, and the names and values that stand in them.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.html (read November
2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from orchestration.errors import near
from orchestration.lint.findings import Finding
from orchestration.lint.machines import pointer
from orchestration.lint.values import is_placeholder

_EXPRESSIONS: Final = (
    *("ConditionExpression", "FilterExpression", "KeyConditionExpression"),
    *("ProjectionExpression", "UpdateExpression"),
)
_PLACES: Final = {"#": "ExpressionAttributeNames", ":": "ExpressionAttributeValues"}
_GRAMMAR: Final = frozenset({"ADD", "AND", "BETWEEN", "DELETE", "IN", "NOT", "OR", "REMOVE", "SET"})
_ATTRIBUTE = re.compile(r"(?<![\w:#$-])[A-Za-z]\w*(?!\w|\s*\()")
"""A name of an attribute: what no mark stands before, and is no call."""
_CLAUSE = re.compile(r"\s*(SET|REMOVE|ADD|DELETE)\s", re.IGNORECASE)


@cache
def reserved() -> frozenset[str]:
    """Return the words that no expression has as the name of an attribute."""
    text = resources.files(__package__).joinpath("reserved.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return frozenset(" ".join(lines).split())


def findings(values: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Yield what is wrong with the expressions of a request, as far as they are written out."""
    given = {name: values[name] for name in _EXPRESSIONS if name in values}
    texts = {name: text for name, text in given.items() if isinstance(text, str)}
    update = texts.get("UpdateExpression")
    if update is not None and not _CLAUSE.match(update):
        message = f"expected SET, REMOVE, ADD or DELETE at the beginning, got {update!r}"
        yield Finding("wrong-request-value", f"{path}/UpdateExpression", message)
    yield from _reserved(texts, path)
    for mark, place in _PLACES.items():
        defined = values.get(place, {})
        if not isinstance(defined, Mapping):
            continue
        used = {
            name: sorted(set(re.findall(rf"{mark}[A-Za-z0-9_]+", text)))
            for name, text in texts.items()
        }
        yield from _undefined(used, defined, path, place)
        for name in defined:
            where = f"{path}/{place}/{pointer(str(name))}"
            if not str(name).startswith(mark):
                message = f"expected a name that begins with {mark}, got {name!r}"
                yield Finding("wrong-request-value", where, message)
            elif len(texts) == len(given) and not any(name in each for each in used.values()):
                message = f"no expression of the request uses {name}; remove it, or use it"
                yield Finding("wrong-request-value", where, message)


def _reserved(texts: Mapping[str, str], path: str) -> Iterator[Finding]:
    for name, text in texts.items():
        names = {} if is_placeholder(text) else dict.fromkeys(_ATTRIBUTE.findall(text))
        for word in names:
            if word.upper() in reserved() - _GRAMMAR:
                message = f"{word} is a reserved word; name it in ExpressionAttributeNames"
                yield Finding("wrong-request-value", f"{path}/{name}", message)


def _undefined(
    used: Mapping[str, list[str]], defined: Mapping[str, Any], path: str, place: str
) -> Iterator[Finding]:
    for name, marks in used.items():
        for mark in marks:
            if mark not in defined and not is_placeholder(mark):
                message = f"{mark} is not in {place}{near(mark, defined)}"
                yield Finding("wrong-request-value", f"{path}/{name}", message)
