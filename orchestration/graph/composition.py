"""A graph as what a state machine can say: one after the other, and side by side.

Steps that wait for each other are put in series, those that don't in branches. That is exact for
every graph made of series and branches, however deep; in one that isn't (``a -> c``, ``a -> d``,
``b -> d``), the steps that wait for nothing are put before the rest, so a step may wait longer than
it has to, and never too little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Series:
    """One after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Branches:
    """Side by side."""

    parts: tuple[Part, ...]


Part: TypeAlias = "str | Series | Branches"
"""The name of a step, or several composed."""

_Relation: TypeAlias = Callable[[str, str], bool]


def compose(names: Sequence[str], upstream: Mapping[str, frozenset[str]]) -> Part:
    """The structure of steps, of which each waits for those ``upstream`` has for it.

    Branches, and what waits for nothing in common, keep the order of ``names``.
    """
    before = _ancestors(names, upstream)
    return _compose(list(names), before)


def leaves(part: Part) -> Iterator[str]:
    """The names of a structure, in order."""
    if isinstance(part, str):
        yield part
    else:
        for inner in part.parts:
            yield from leaves(inner)


def spine(part: Part) -> int:
    """How many branches are entered on the way to the first step."""
    if isinstance(part, str):
        return 0
    return isinstance(part, Branches) + spine(part.parts[0])


def parts_in_series(part: Part) -> tuple[Part, ...]:
    """What runs one after the other."""
    return part.parts if isinstance(part, Series) else (part,)


def _ancestors(
    names: Sequence[str], upstream: Mapping[str, frozenset[str]]
) -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}

    def ancestors(name: str) -> frozenset[str]:
        if name not in found:
            found[name] = upstream[name].union(*(ancestors(n) for n in upstream[name]))
        return found[name]

    return {name: ancestors(name) for name in names}


def _compose(names: list[str], before: Mapping[str, frozenset[str]]) -> Part:
    if len(names) == 1:
        return names[0]

    def ordered(a: str, b: str) -> bool:
        return a in before[b] or b in before[a]

    branches = _connected(names, ordered)
    if len(branches) > 1:
        return Branches(tuple(_compose(branch, before) for branch in branches))
    blocks = _connected(names, lambda a, b: not ordered(a, b))
    if len(blocks) > 1:
        # Of two blocks, all of one comes before all of the other.
        blocks.sort(key=lambda block: len(before[block[0]].intersection(names)))
        return _series([_compose(block, before) for block in blocks])
    first = [name for name in names if before[name].isdisjoint(names)]
    rest = [name for name in names if name not in first]
    return _series([_compose(first, before), _compose(rest, before)])


def _series(parts: list[Part]) -> Series:
    return Series(tuple(inner for part in parts for inner in parts_in_series(part)))


def _connected(names: list[str], related: _Relation) -> list[list[str]]:
    """Groups that are not related to each other, by their first names' order."""
    left = list(names)
    groups: list[list[str]] = []
    while left:
        group, reach = {left[0]}, [left[0]]
        while reach:
            at = reach.pop()
            near = [name for name in left if name not in group and related(at, name)]
            group.update(near)
            reach.extend(near)
        groups.append([name for name in names if name in group])
        left = [name for name in left if name not in group]
    return groups
