"""JSON laid out to be read and compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestration.expressions import Json

_WIDTH: Final = 100
_INDENT: Final = 2


def laid_out(document: Json) -> str:
    """Return a document as a file's text: what fits into a line stands in one."""
    return _value(document, 0, 0) + "\n"


def indented(document: Json) -> str:
    """Return a document as a file's text, each value in a line of its own as AWS shows it."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _value(value: Json, indent: int, column: int) -> str:
    """Return a value's text: the value stands in ``column``, of a line indented by ``indent``."""
    if isinstance(value, Mapping) and value:
        names = [f"{json.dumps(key, ensure_ascii=False)}: " for key in value]
        opening, values, closing = "{", list(value.values()), "}"
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        opening, values, closing = "[", list(value), "]"
        names = [""] * len(values)
    else:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + _INDENT
    items = [
        name + _value(item, inner, inner + len(name))
        for name, item in zip(names, values, strict=True)
    ]
    # One character for a comma, or for what stands behind it in turn.
    if column + sum(map(len, items)) + 2 * len(items) + 1 <= _WIDTH and not any(
        "\n" in item for item in items
    ):
        return opening + ", ".join(items) + closing
    begin = "\n" + " " * inner
    return f"{opening}{begin}{f',{begin}'.join(items)}\n{' ' * indent}{closing}"
