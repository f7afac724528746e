"""Places of one value in a JSON document, as people write them in JMESPath.

Fields, numbers of elements and the first object of a list that a filter finds are taken; whatever
gives several values, or computes one, is refused with the way out:
https://jmespath.org/specification.html
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from orchestration.errors import Problem
from orchestration.graph import First, Output, Part

_NAME: Final = r"""[^\s.\[\]"'`|?*&!<>=(){}@,\\]+"""
"""More than JMESPath takes without quotes: names of metrics such as ``validation:loss``."""
_QUOTED: Final = r'"(?:[^"\\]|\\.)+"'
_LITERAL: Final = r"'(?P<raw>[^'\\]*)'|`(?P<json>[^`]*)`"
_PARTS: Final = (
    ("field", re.compile(rf"(?P<name>{_NAME})|(?P<quoted>{_QUOTED})")),
    ("number", re.compile(r"\[(?P<number>-?\d{1,9})\]")),
    (
        "filter",
        re.compile(
            rf"\[\?\s*(?:(?P<name>{_NAME})|(?P<quoted>{_QUOTED}))\s*==\s*(?:{_LITERAL})\s*\]"
            r"(?P<first>\s*\|\s*\[0\])?"
        ),
    ),
)
_WORD: Final = re.compile(r"\s*[A-Za-z_][\w:/-]*")
_LARGEST: Final = 2**53
"""JSONata's numbers have 53 bits; above, more than one is equal to a number."""
_EXAMPLE: Final = "metrics[?name=='accuracy'] | [0].value"
_REFUSED: Final = (
    (re.compile(r"\*|\[\]"), "* and [] give a list, and one value is needed; name an element"),
    (re.compile(r"\("), "functions are not taken; let the document hold the value"),
    (re.compile(r"\[-?\d*:"), "slices give a list, and one value is needed; name an element"),
    (re.compile(r"\|\|"), "|| is not taken; name one place"),
)


def place(written: str) -> tuple[Part, ...]:
    """Return the parts of a place; a :class:`ValueError` says what is wrong with it.

    >>> place("labels[0].name")
    ('labels', 0, 'name')
    """
    parts: list[Part] = []
    at = 0
    while at < len(written):
        dot = bool(parts) and written[at] == "."
        kind, match = _next(written, at + dot)
        dotted = kind == "field" and bool(parts)
        if match is None or dot != dotted:
            raise ValueError(_refusal(written, at))
        parts.append(_part(kind, match, written))
        at = match.end()
    if not parts:
        raise ValueError("expected fields and numbers, as in scores[0].value, got no text")
    return tuple(parts)


def problems(field: str, written: str) -> Iterator[Problem]:
    """Yield the error of a place, told at a field."""
    try:
        place(written)
    except ValueError as error:
        yield Problem(field, str(error))


def value_at(parts: tuple[Part, ...], **fields: Any) -> Output:
    """Return the output with the value at a place of a document."""
    first = next((n for n, part in enumerate(parts) if isinstance(part, First)), len(parts))
    plain = tuple(part for part in parts[:first] if not isinstance(part, First))
    return replace(Output(plain, inside=parts[first:]), **fields)


def _next(written: str, at: int) -> tuple[str, re.Match[str] | None]:
    for kind, pattern in _PARTS:
        if (match := pattern.match(written, at)) is not None:
            return kind, match
    return "", None


def _part(kind: str, match: re.Match[str], written: str) -> Part:
    if kind == "number":
        return int(match["number"])
    name = match["name"] or _name(match["quoted"], written)
    if kind == "field":
        return name
    if match["first"] is None:
        found = match[0]
        raise ValueError(f"{written!r}: {found} gives a list; take its first: {found} | [0]")
    return First(name, _literal(match, written))


def _name(quoted: str, written: str) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError as error:
        raise ValueError(f"{written!r}: {quoted} is not a name in quotes") from error


def _literal(match: re.Match[str], written: str) -> str | float | bool:
    if match["raw"] is not None:
        return match["raw"]
    text = match["json"]
    try:
        value = json.loads(text)
    except ValueError:
        # As the command line of AWS takes it.
        value = text.strip() if _WORD.fullmatch(text) else None
    if isinstance(value, float) and not math.isfinite(value):
        value = None
    if not isinstance(value, str | int | float) or (
        not isinstance(value, str) and abs(value) >= _LARGEST
    ):
        raise ValueError(
            f"{written!r}: expected a text, a number, true or false in `…`, got `{text}`"
        )
    return value


def _refusal(written: str, at: int) -> str:
    rest = written[at:]
    for pattern, reason in _REFUSED:
        if pattern.search(rest):
            return f"{written!r}: {reason}"
    if "[?" in rest:
        return f"{written!r}: a filter compares one field with one value, as in {_EXAMPLE}"
    return (
        f"{written!r} is no place of one value, from {rest!r} on; write fields and numbers, as in "
        f"scores[0].value, names with other letters in quotes, or a filter, as in {_EXAMPLE}"
    )
