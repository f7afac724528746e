"""JSON as a text with references in it, for fields that take it so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from orchestration.importing.state_machines.data import Place, Unknown, is_known


def as_text(value: Any) -> Any:
    """Return an object or a list as the text of its JSON; what a run will have is text in it."""
    if is_known(value):
        return json.dumps(value)
    together: list[Any] = []
    for part in _parts(value):
        if isinstance(part, str) and together and isinstance(together[-1], str):
            together[-1] += part
        else:
            together.append(part)
    return {"Std:Join": {"On": "", "Values": together}}


def is_structured(value: Any) -> bool:
    """Return whether a value is an object or a list, and no reference."""
    return isinstance(value, list) or (isinstance(value, Mapping) and not _is_reference(value))


def _is_reference(value: Any) -> bool:
    return isinstance(value, Place | Unknown) or (
        isinstance(value, Mapping) and len(value) == 1 and bool(value.keys() & {"Get", "Std:Join"})
    )


def _parts(value: Any) -> Iterator[Any]:
    if _is_reference(value):
        yield from ('"', value, '"')
    elif isinstance(value, Mapping):
        yield "{"
        for number, (key, item) in enumerate(value.items()):
            yield f"{', ' if number else ''}{json.dumps(key)}: "
            yield from _parts(item)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for number, item in enumerate(value):
            yield ", " if number else ""
            yield from _parts(item)
        yield "]"
    else:
        yield json.dumps(value)
