"""Map states as loops over the elements of a list, where stages go through such lists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestration.importing.state_machines.data import Data, Place, is_known
from orchestration.importing.steps.step import snake
from orchestration.importing.steps.types import typed
from orchestration.lint.machines import State

ELEMENT: Final = Place("Each", "item")
"""The element that a Map is at."""
_MOST_AT_A_TIME: Final = 40
_NAMING: Final = ("id", "key", "name")
_KNOWN: Final = re.compile(r"(Parameters|Execution|Steps|Each)\.")
_FIELD: Final = re.compile(r"Each\.item\.([a-z][a-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class Loop:
    """A Map, and the data that its first state is given."""

    items: Any
    data: Data
    concurrency: int


def loop_of(state: State, data: Data, given: Any) -> Loop | str:
    """Return the loop that a Map is; else why no stage goes through its elements.

    ``given`` is the input of the Map.
    """
    for name in ("ItemReader", "ItemBatcher"):
        if name in state.fields:
            return f"no stage has what its {name} does"
    if len(state.inner) != 1:
        return "it has no ItemProcessor"
    items = _items(state, data, given)
    listed = isinstance(items, list) and is_known(items)
    placed = isinstance(items, Place) and bool(items.path) and items.root != ELEMENT.root
    if not (listed or placed):
        return "its list is not known before a run"
    inner = replace(data, element=ELEMENT, input=given, result=None)
    made: Any = ELEMENT
    for key in ("ItemSelector", "Parameters"):
        if key in state.fields:
            made = inner.template(state.fields[key], state.language)
    asked = state.fields.get("MaxConcurrency")
    at_a_time = min(asked, _MOST_AT_A_TIME) if isinstance(asked, int) else 0
    # 0: as many as AWS has room for.
    return Loop(items, replace(inner, input=made), at_a_time or _MOST_AT_A_TIME)


def _items(state: State, data: Data, given: Any) -> Any:
    if state.language == "JSONata":
        return data.template(state.fields.get("Items", "{% $states.input %}"), "JSONata")
    return data.path(str(state.fields.get("ItemsPath", "$")), given)


def for_each(state: State, loop: Loop, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any] | str:
    """Return the loop as a stage has it; else why these steps do not fit into one."""
    if not steps:
        return "none of its states does what a stage does"
    if any(step["Type"] == "Approval" for step in steps):
        return "a person answers once for all of a list"
    if any("ForEach" in step for step in steps):
        return "a Map in it goes through another list"
    read = [place for step in steps for place in _read(step)]
    odd = next((place for place in read if not _KNOWN.match(f"{place}.")), None)
    if odd is not None:
        return f"nothing stands for {odd}"
    own = dict.fromkeys(place for place in read if place.startswith("Each."))
    matches = {place: _FIELD.fullmatch(place) for place in own}
    fields = [match[1] for match in matches.values() if match]
    if any(match is None and place != "Each.item" for place, match in matches.items()):
        wrong = next(place for place, match in matches.items() if match is None)
        return f"no element of a list has {wrong.removeprefix('Each.item').lstrip('.')} here"
    if fields and "Each.item" in own:
        return "it reads both an element and its fields"
    made: dict[str, Any] = {"items": loop.items, "max_concurrency": loop.concurrency}
    if fields:
        types = _types(fields, loop.items, steps)
        texts = [field for field in fields if types[field] == "string"]
        if not texts:
            return f"no text that it reads tells elements apart: {', '.join(fields)}"
        key = next((field for field in texts if field in _NAMING), texts[0])
        made |= {"fields": types, "key": key}
    return made if len(steps) == 1 else {**made, "together": snake(state.name)}


def told(loop: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a loop takes its list for."""
    yield f"goes through 100 elements at the most, {loop['max_concurrency']} at a time (for_each)"
    if "key" in loop:
        fields = [
            name if kind == "string" else f"{name} (a {kind})"
            for name, kind in loop["fields"].items()
        ]
        text = "elements are taken for objects with the texts"
        yield f"{text} {', '.join(fields)}, of which {loop['key']} tells them apart"


def _types(fields: Sequence[str], items: Any, steps: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the types of fields: as the elements have them, else as requests need them."""
    needed = {
        str(value.get("Get", "")).removeprefix("Each.item."): kind
        for step in steps
        for value, kind in typed(step["Type"], step, step["Arguments"])
    }
    rows = [row for row in items if isinstance(row, Mapping)] if isinstance(items, list) else []
    made = {}
    for field in fields:
        kinds = {_type(row[field]) for row in rows if field in row}
        made[field] = kinds.pop() if len(kinds) == 1 else needed.get(field, "string")
    return made


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "string"


def _read(value: Any) -> Iterator[str]:
    """Yield the places that a step's own fields read."""
    match value:
        case {"Get": str(place)} if len(value) == 1:
            yield place
        case Mapping():
            for key, item in value.items():
                if key != "Ways":
                    yield from _read(item)
        case list():
            for item in value:
                yield from _read(item)
