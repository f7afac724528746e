"""A stage's data without its mistakes, and where these were."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

_MOST_ROUNDS: Final = 3
"""A union of models tells of one member's mistakes at a time."""
_MISSING: Final = "missing"
_UNKNOWN: Final = "extra_forbidden"


def mend(data: Mapping[str, Any], read: Callable[[Any], object]) -> tuple[Any, tuple[str, ...]]:
    """Return a stage's data without what is wrong, and the paths of values that were dropped.

    An unknown key is left out, a wrong value has its field's default instead, and a wrong element
    of a list is one of the others. Where a field has no default, the data stays unreadable.
    ``read`` raises Pydantic's error for what it can't read.
    """
    from pydantic import ValidationError

    kept, mended = deepcopy(dict(data)), dict[str, None]()
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
            if kind == _MISSING or isinstance(path[-1], int):
                dropped = _replace_element(kept, path, [each for _, each in found])
            else:
                dropped = _drop(kept, path)
            if dropped and kind != _UNKNOWN:
                mended[_written(dropped)] = None
    return kept, tuple(mended)


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
