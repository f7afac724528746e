"""JSON as a text with references in it, for fields that take it so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from orchestration.importing.state_machines.data import is_known, is_reference


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
    return isinstance(value, list) or (isinstance(value, Mapping) and not is_reference(value))


def _parts(value: Any) -> Iterator[Any]:
    if is_reference(value):
        yield from ('"', *_inside(value), '"')
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


def _inside(value: Any) -> Iterator[Any]:
    """Yield the parts of a text in JSON, what is constant in it as JSON writes it."""
    match value:
        case {"Std:Join": {"Values": list(values)}}:
            for each in values:
                yield from _inside(each)
        case str():
            yield json.dumps(value)[1:-1]
        case _:
            yield value if is_reference(value) else json.dumps(value)
