"""The JSONPath of batch transforms: what it may hold, and what it selects.

https://docs.aws.amazon.com/sagemaker/latest/dg/batch-transform-data-processing.html: ``$``,
``.name``, ``*``, ``['a','b']``, ``[0,-1]``, ``[1:]``. How the service wraps what it selects
was recalled from there, and is verified by nobody here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

LONGEST: Final = 63
_SEGMENT = re.compile(r"\.?\[(?P<inside>[^\[\]]+)\]|\.(?P<name>[\w-]+|\*)")
_ELEMENT = re.compile(
    r"""'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<start>-?\d*):(?P<end>-?\d*)|(?P<index>-?\d+)|(?P<all>\*)"""
)

Selector: TypeAlias = str | int | slice


@dataclass(frozen=True, slots=True)
class Segment:
    """One step down: the selectors between two brackets."""

    selectors: tuple[Selector, ...]

    @property
    def names_one(self) -> bool:
        """True if it selects one value, which then stands by itself."""
        return len(self.selectors) == 1 and not isinstance(self.selectors[0], slice)


def parse(path: str) -> tuple[Segment, ...]:
    """Return the segments of a path; ``ValueError`` where it is not one."""
    if not path.startswith("$"):
        raise ValueError("it begins with $: $, $.features, $[1:], $['id','SageMakerOutput']")
    if len(path) > LONGEST:
        raise ValueError(f"it has {len(path)} characters; the most is {LONGEST}")
    segments, position = [], 1
    while position < len(path):
        match = _SEGMENT.match(path, position)
        if match is None:
            raise ValueError(
                f"{path[position:]!r} is none of .name, .*, ['name','name'], [0,-1], [1:]"
            )
        inside = match["inside"]
        segments.append(_named(match["name"]) if inside is None else Segment(_selectors(inside)))
        position = match.end()
    return tuple(segments)


def _named(name: str) -> Segment:
    return Segment((slice(None),) if name == "*" else (name,))


def _selectors(inside: str) -> tuple[Selector, ...]:
    return tuple(_selector(part) for part in _parts(inside))


def _parts(inside: str) -> Iterator[str]:
    for part in re.findall(r"""'[^']*'|"[^"]*"|[^,]+""", inside):
        if part.strip():
            yield part.strip()


def _selector(part: str) -> Selector:
    match = _ELEMENT.fullmatch(part)
    if match is None:
        raise ValueError(f"{part!r} between brackets is no name in quotes, number or range")
    if match["index"] is not None:
        return int(match["index"])
    if match["all"] is not None:
        return slice(None)
    if match["start"] is not None:
        return slice(_number(match["start"]), _number(match["end"]))
    return str(match["single"] if match["double"] is None else match["double"])


def _number(text: str) -> int | None:
    return int(text) if text else None


def select(path: str, value: Any) -> Any:
    """Return the part of a value; ``ValueError`` where it has none."""
    for segment in parse(path):
        value = _below(segment, value)
    return value


def _below(segment: Segment, value: Any) -> Any:
    if segment.names_one:
        return _one(segment.selectors[0], value)
    if isinstance(value, dict):
        names = [name for name in segment.selectors if isinstance(name, str)]
        return {name: _one(name, value) for name in names or value}
    if not isinstance(value, list):
        raise ValueError(f"there is nothing below {value!r}")
    chosen: list[Any] = []
    for selector in segment.selectors:
        chosen += value[selector] if isinstance(selector, slice) else [_one(selector, value)]
    return chosen


def _one(selector: Selector, value: Any) -> Any:
    try:
        return value[selector]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"there is no {selector!r}") from error
