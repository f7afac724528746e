"""A stage's data without its mistakes, and where these were."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from orchestration.errors import misspelt

_MOST_ROUNDS: Final = 3
"""A union of models tells of one member's mistakes at a time."""
_MISSING: Final = "missing"
_UNKNOWN: Final = "extra_forbidden"

_Path = Sequence[str | int]


def mend(
    data: Mapping[str, Any], fields: Collection[str], read: Callable[[Any], object]
) -> tuple[Any, dict[str, _Path]]:
    """Return a stage's data without what is wrong, and the paths of values that were dropped.

    Those come by how they are written. An unknown key is the one of its ``fields`` that it
    misspells, or left out; a wrong value has its field's default instead, and a wrong element of a
    list is one of the others. Where a field has no default, the data stays unreadable. ``read``
    raises Pydantic's error for what it can't read.
    """
    kept, mended = deepcopy(dict(data)), dict[str, _Path]()
    for _ in range(_MOST_ROUNDS):
        try:
            read(kept)
        except ValidationError as error:
            found = [
                (item["type"], _path(kept, item["loc"][1:]))
                for item in error.errors(include_url=False, include_input=False)
            ]
        else:
            break
        for kind, path in found:
            if kind == _UNKNOWN and _spell(kept, path, fields):
                continue
            if kind == _MISSING or isinstance(path[-1], int):
                dropped = _replace_element(kept, path, [each for _, each in found])
            else:
                dropped = _drop(kept, path)
            if dropped and kind != _UNKNOWN:
                mended[_written(dropped)] = dropped
    return kept, mended


def replaced(stage: object, path: _Path) -> bool:
    """Return whether a stage has a value in the place of one that was dropped.

    It is another element of the list, or the field's default. To have none means something of its
    own, so that advice for such a stage may be wrong for the one that was written.
    """
    if isinstance(path[-1], int):
        return True
    value: Any = stage
    for part in path:
        value = _part(value, part)
    return isinstance(value, int | float | str) and value != ""


def _part(value: Any, part: str | int) -> Any:
    if isinstance(part, str):
        return value.get(part) if isinstance(value, Mapping) else getattr(value, part, None)
    if isinstance(value, BaseModel):
        # A list may be short for an object with that list in it.
        value = next((each for _, each in value if isinstance(each, tuple)), ())
    listed = value if isinstance(value, list | tuple) else ()
    return listed[part] if part < len(listed) else None


def _path(data: Any, location: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return where an error is in the data; Pydantic also names the member of a union it tried."""
    path: list[str | int] = []
    for part in location:
        in_list = isinstance(data, list | tuple) and isinstance(part, int) and part < len(data)
        if not in_list and not (isinstance(data, Mapping) and part in data):
            continue
        data = data[part]
        path.append(part)
    return tuple(path) or ("",)


def _spell(data: Any, path: _Path, fields: Collection[str]) -> bool:
    """Give a value of a stage to the field that its key misspells; false where none is sure."""
    *parents, key = path
    meant = None if parents else misspelt(str(key), fields)
    if meant is None or meant in data:
        return False
    data[meant] = data.pop(key)
    return True


def _drop(data: Any, path: Sequence[str | int]) -> Sequence[str | int]:
    *parents, last = path
    for part in parents:
        data = data[part]
    if isinstance(data, dict) and last in data:
        del data[last]
        return path
    return ()


def _replace_element(
    data: Any, path: Sequence[str | int], wrong: Sequence[Sequence[str | int]]
) -> Sequence[str | int]:
    """Put a right element of the innermost list on a path in the place of the wrong one."""
    places = [at for at, part in enumerate(path) if isinstance(part, int)]
    if not places:
        return ()
    at = places[-1]
    for part in path[:at]:
        data = data[part]
    numbers = {each[at] for each in wrong if len(each) > at and each[:at] == path[:at]}
    right = [each for number, each in enumerate(data) if number not in numbers]
    if not right or not isinstance(data, list):
        return ()
    data[int(path[at])] = deepcopy(right[0])
    return path[: at + 1]


def _written(path: Sequence[str | int]) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).removeprefix(".")
