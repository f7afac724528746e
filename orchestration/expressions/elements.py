"""Lists of objects: whether each has the fields that are expected of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from orchestration.expressions.nodes import Json

FieldType: TypeAlias = Literal["string", "number", "boolean"]

ELEMENT: Final = "element "
NOT_AN_OBJECT: Final = " is not an object"
MOST_NAMED: Final = 3
SEPARATOR: Final = "; "


def lacks(name: str, kind: str) -> str:
    """Return the words, behind those for an element, where a field has no value of a type."""
    return f" has no {kind} {name}"


def repeated(key: str) -> str:
    """Return the text where the field that names elements does not tell them apart."""
    return f"two elements have the same {key}"


def misfits(items: Sequence[Json], key: str, fields: Mapping[str, str]) -> str:
    """Return what is wrong with the first elements that are wrong; empty text if none is.

    ``key`` is a field that no two elements have in common.

    >>> misfits([{"market": "de"}, {"market": 1}, 2], "market", {"market": "string"})
    'element 2 has no string market; element 3 is not an object'
    """
    wrong = [
        f"{ELEMENT}{number}{words}"
        for number, item in enumerate(items, start=1)
        if (words := _misfit(item, fields))
    ]
    if wrong:
        return SEPARATOR.join(wrong[:MOST_NAMED])
    keys: list[Any] = [item[key] for item in items if isinstance(item, Mapping)]
    return repeated(key) if len(set(keys)) < len(keys) else ""


def _misfit(item: Json, fields: Mapping[str, str]) -> str:
    if not isinstance(item, Mapping):
        return NOT_AN_OBJECT
    wrong = (name for name, kind in fields.items() if _type(item.get(name)) != kind)
    return next((lacks(name, fields[name]) for name in wrong), "")


def _type(value: Json) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else ""
