"""The words and small phrases of JSONata, and how a state holds them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

from orchestration.errors import UnsupportedError
from orchestration.expressions import Json

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset({"and", "or", "in", "true", "false", "null", "function"})
_NO_STEP = re.compile(r"[`\x00-\x1f]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = re.compile(r"[\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|%(?=\})|\{(?=%)")
_ESCAPED_IN_DOUBLE = re.compile(f'"|{_ESCAPED.pattern}')


def enclosed(text: str) -> str:
    """Return JSONata as the value of a field."""
    return f"{{% {text} %}}"


def quote(text: str) -> str:
    r"""Return a text as a JSONata literal.

    In single quotes, which need no escaping in JSON, unless the text holds one: JSONata has no
    escape for it.

    >>> print(quote('"5" %}'), quote("it's"))
    '"5" \u0025}' "it's"
    """
    if "'" in text:
        return '"' + _ESCAPED_IN_DOUBLE.sub(_escape, text) + '"'
    return f"'{_ESCAPED.sub(_escape, text)}'"


def literal(value: Json) -> str:
    """Return a JSON value as JSONata.

    >>> literal({"a": [1, None]})
    "{'a': [1, null]}"
    """
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{quote(k)}: {literal(item)}' for k, item in value.items())}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        raise UnsupportedError([f"{value!r} is not a JSON number"])
    return json.dumps(value)


def field_value(value: Json) -> Json:
    """Return a JSON value as the value of a state's field, written so that it arrives as it is."""
    if isinstance(value, str):
        # The public validators take an empty text for neither a literal nor an expression.
        taken_for_jsonata = value == "" or value.startswith("{%") or value.endswith("%}")
        return enclosed(quote(value)) if taken_for_jsonata else value
    if isinstance(value, Mapping):
        if any(key.endswith(".$") for key in value):
            return enclosed(literal(value))
        return {key: field_value(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [field_value(item) for item in value]
    return value


def field(value: str, key: str) -> str:
    """Return one field of an object that is sure to be one."""
    if _PLAIN_NAME.fullmatch(key) and key not in _KEYWORDS:
        return f"{value}.{key}"
    return f"$lookup({value}, {quote(key)})"


def path(root: str, at: Sequence[str | int]) -> str:
    """Return a place below a value, ``$states.result.Tags[0].Key``: nothing if it is missing."""
    return root + "".join(f"[{s}]" if isinstance(s, int) else f".{step(s)}" for s in at)


def step(key: str) -> str:
    """Return a field's name as a step of a path."""
    if _PLAIN_NAME.fullmatch(key) and key not in _KEYWORDS:
        return key
    if not key or _NO_STEP.search(key):
        raise UnsupportedError([f"JSONata has no path to a field named {key!r}"])
    return f"`{key}`"


def checked(value: str, test: str, then: str, message: str, *, told: str = "") -> str:
    """Return a value under a condition; both speak of it as ``$v``.

    ``told`` is text for the end of the message.
    """
    return f"($v := {value}; {test} ? {then} : {refused(message, told)})"


def refused(message: str, told: str = "") -> str:
    """Return JSONata that fails with a message, with the text ``told`` at its end."""
    if not told:
        return f"$error({quote(message)})"
    return f"""$error({quote(f"{message} '")} & {told} & {quote("'")})"""


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}"
