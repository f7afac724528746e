"""Map states as loops over the elements of a list, where stages go through such lists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestration.importing.state_machines.choices import compared, is_whole
from orchestration.importing.state_machines.data import Data, Place, is_known
from orchestration.importing.steps.step import snake
from orchestration.importing.steps.types import typed
from orchestration.lint.machines import State

ELEMENT: Final = Place("Each", "item")
"""The element that a Map is at."""
_MOST_AT_A_TIME: Final = 40
_MOST_OBJECTS: Final = 1000
"""Of a page of a listing, and of a stage's elements."""
_NAMING: Final = ("id", "key", "name")
_KNOWN: Final = re.compile(r"(Parameters|Execution|Steps|Each)\.")
_FIELD: Final = re.compile(r"Each\.item\.([a-z][a-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class Loop:
    """A Map, and the data that its first state is given."""

    items: Any
    data: Data
    concurrency: int
    of_objects: bool
    """True if it goes through the keys of objects."""
    is_input: bool
    """True if the list is the whole input of the execution."""


def listing(state: State, data: Data, given: Any) -> dict[str, Any] | str | None:
    """Return the call that lists the objects which a Map goes through; else why no call does.

    None for a Map whose list is in its data.
    """
    reader = state.fields.get("ItemReader")
    if reader is None:
        return None
    resource = str(reader.get("Resource", ""))
    if not resource.endswith(":s3:listObjectsV2"):
        return f"no stage reads the list that its ItemReader does ({resource})"
    if more := reader.keys() - {"Resource", "Parameters", "Arguments"}:
        return f"no stage has what its ItemReader.{min(more)} does"
    asked = reader.get("Parameters", reader.get("Arguments", {}))
    request = data.template(asked, state.language, source=given)
    return {"Type": "Call", "Service": "s3", "Operation": "ListObjectsV2", "Arguments": request}


def loop_of(state: State, data: Data, given: Any, objects: Place | None) -> Loop | str:
    """Return the loop that a Map is; else why no stage goes through its elements.

    ``given`` is the input of the Map, ``objects`` the place of the objects' keys where it lists
    objects.
    """
    if "ItemBatcher" in state.fields:
        return "no stage has what its ItemBatcher does"
    if len(state.inner) != 1:
        return "it has no ItemProcessor"
    items = _items(state, data, given) if objects is None else objects
    is_input = items == Place("Parameters")
    if is_input:
        items = Place("Parameters", "items")  # The input of an execution of ours is an object.
    listed = isinstance(items, list) and is_known(items)
    placed = isinstance(items, Place) and bool(items.path) and items.root != ELEMENT.root
    if not (listed or placed):
        return "its list is not known before a run"
    made: Any = ELEMENT if objects is None else {"Key": ELEMENT}
    inner = replace(data, element=made, input=given, result=None)
    for key in ("ItemSelector", "Parameters"):
        if key in state.fields:
            made = inner.template(state.fields[key], state.language)
    asked = state.fields.get("MaxConcurrency")
    at_a_time = min(asked, _MOST_AT_A_TIME) if isinstance(asked, int) else 0
    # 0: as many as AWS has room for.
    concurrency = at_a_time or _MOST_AT_A_TIME
    return Loop(items, replace(inner, input=made), concurrency, objects is not None, is_input)


def _items(state: State, data: Data, given: Any) -> Any:
    if state.language == "JSONata":
        return data.template(state.fields.get("Items", "{% $states.input %}"), "JSONata")
    return data.path(str(state.fields.get("ItemsPath", "$")), given)


def for_each(
    state: State,
    loop: Loop,
    steps: Sequence[Mapping[str, Any]],
    conditions: Sequence[Mapping[str, Any]],
) -> dict[str, Any] | str:
    """Return the loop as a stage has it; else why these steps do not fit into one.

    ``conditions`` decide on steps for one element.
    """
    if why := _unlike(steps, conditions):
        return why
    read = [place for each in (*steps, *conditions) for place in _read(each)]
    unknown = next((place for place in read if not _KNOWN.match(f"{place}.")), None)
    if unknown is not None:
        return f"nothing stands for {unknown}"
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
        types = _types(fields, loop.items, steps, conditions)
        texts = [field for field in fields if types[field] == "string"]
        if not texts:
            return f"no text that it reads tells elements apart: {', '.join(fields)}"
        key = next((field for field in texts if field in _NAMING), texts[0])
        made |= {"fields": types, "key": key}
    if loop.of_objects:
        made["at_most"] = _MOST_OBJECTS
    is_group = len(steps) > 1 or bool(conditions)
    return {**made, "together": snake(state.name)} if is_group else made


def _unlike(steps: Sequence[Mapping[str, Any]], conditions: Sequence[Mapping[str, Any]]) -> str:
    """Return why steps do what no stage with ``for_each`` does; empty where they do not."""
    if not steps:
        return "none of its states does what a stage does"
    if any(step["Type"] == "Approval" for step in steps):
        return "a person answers once for all of a list"
    if any("ForEach" in step for step in steps):
        return "a Map in it goes through another list"
    odd = next((each for each in conditions if not is_whole(each)), None)
    if odd is not None:
        return f"no condition says what decides for one element: {odd['Path']}"
    return ""


def told(given: Loop, loop: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a loop takes its list for."""
    if given.is_input:
        yield "goes through the input of the execution, which is the parameter items here"
    most = loop.get("at_most", 100)
    at_a_time = loop["max_concurrency"]
    yield f"goes through {most} elements at the most, {at_a_time} at a time (for_each)"
    if given.of_objects:
        yield "elements are objects of S3, of which only the Key is read"
    if "key" in loop:
        fields = [
            name if kind == "string" else f"{name} (a {kind})"
            for name, kind in loop["fields"].items()
        ]
        text = "elements are taken for objects with the texts"
        yield f"{text} {', '.join(fields)}, of which {loop['key']} tells them apart"


def _types(
    fields: Sequence[str],
    items: Any,
    steps: Sequence[Mapping[str, Any]],
    conditions: Sequence[Mapping[str, Any]],
) -> dict[str, str]:
    """Return the types of fields: as the elements have them, else as requests need them.

    Those that conditions compare with a literal have its type.
    """
    needed = {
        str(value.get("Get", "")).removeprefix("Each.item."): kind
        for step in steps
        for value, kind in typed(step["Type"], step, step["Arguments"])
    }
    for place, literal in (pair for each in conditions for pair in compared(each)):
        needed.setdefault(place.removeprefix("Each.item."), _type(literal))
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
