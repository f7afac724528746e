"""Pydantic's errors in the words of this package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_EXPECTED = {
    "bool": "true or false",
    "date": "a date",
    "dict": "a mapping",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "model": "a mapping",
    "string": "text (in quotes where YAML would take it for something else)",
    "tuple": "a list",
}


def shown(value: object) -> str:
    """Return a value as a message shows it: its beginning, if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def counted(number: int, thing: str) -> str:
    """Return a number of things.

    >>> counted(1, "minute"), counted(30, "minute")
    ('1 minute', '30 minutes')
    """
    plural = "" if number == 1 else "es" if thing.endswith("s") else "s"
    return f"{number} {thing}{plural}"


def phrase(item: Any, *, expected: str | None = None, keys: Sequence[str] = ()) -> str:
    """Say an error of Pydantic's in the words of this package, without its place.

    ``expected`` says of what kind a value would be right, ``keys`` those of a mapping.
    """
    kind, given, context = str(item["type"]), item["input"], item.get("ctx", {})
    match kind:
        case "literal_error":
            return f"expected {context['expected']}, got {shown(given)}"
        case "finite_number":
            return f"expected a finite number, got {shown(given)}"
        case "value_error":
            return str(context["error"])
    if (bound := _bound(kind, context)) is not None:
        return f"{_size(kind, given)}; {bound}"
    expected = expected or _EXPECTED.get(kind.split("_")[0])
    if expected is not None and kind.split("_")[-1] in ("type", "parsing", "float"):
        of = f" with the keys {', '.join(keys)}" if 0 < len(keys) <= 12 else ""
        return f"expected {expected}{of}, got {shown(given)}"
    return str(item["msg"])


def _bound(kind: str, context: Mapping[str, Any]) -> str | None:
    match kind:
        case "greater_than":
            return f"it must be above {context['gt']:g}"
        case "less_than":
            return f"it must be below {context['lt']:g}"
        case "greater_than_equal":
            return f"the least is {context['ge']}"
        case "less_than_equal":
            return f"the most is {context['le']}"
        case "too_short" | "string_too_short":
            return f"the least is {context['min_length']}"
        case "too_long" | "string_too_long":
            return f"the most is {context['max_length']}"
        case "multiple_of":
            return f"it must be a multiple of {context['multiple_of']}"
        case _:
            return None


def _size(kind: str, given: Any) -> str:
    if kind.startswith("string_too"):
        return f"has {len(given)} characters"
    if kind.startswith("too_") and isinstance(given, Sequence | Mapping):
        return f"has {len(given)} entries"
    return f"is {shown(given)}"
