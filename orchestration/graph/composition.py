"""A graph as what a state machine can say: one after the other, and side by side.

Steps that wait for each other are put in series, those that don't in branches. That is exact for
every graph made of series and branches, however deep; in one that isn't (``a -> c``, ``a -> d``,
``b -> d``), the steps that wait for nothing are put before the rest, so a step may wait longer than
it has to, and never too little.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from orchestration.graph.ordering import layered


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


def compose(names: Sequence[str], upstream: Mapping[str, frozenset[str]]) -> Part:
    """The structure of steps, of which each waits for those ``upstream`` has for it.

    Branches, and what waits for nothing in common, keep the order of ``names``.
    """
    return _Steps.of(names, upstream).compose(list(range(len(names))))


def leaves(part: Part) -> Iterator[str]:
    """The names of a structure, in order."""
    if isinstance(part, str):
        yield part
    else:
        for inner in part.parts:
            yield from leaves(inner)


def spine(part: Part) -> int:
    """Return the number of branches to enter on the way to the first step."""
    if isinstance(part, str):
        return 0
    return isinstance(part, Branches) + spine(part.parts[0])


def parts_in_series(part: Part) -> tuple[Part, ...]:
    """Return the parts that run one after the other."""
    return part.parts if isinstance(part, Series) else (part,)


@dataclass(frozen=True, slots=True)
class _Steps:
    """Steps by their numbers, which are the order of their names."""

    names: Sequence[str]
    near: Sequence[Collection[int]]
    """The steps that each one waits for, and those that wait for it."""
    before: Sequence[int]
    """All steps before each one, as a set of bits."""

    @classmethod
    def of(cls, names: Sequence[str], upstream: Mapping[str, frozenset[str]]) -> _Steps:
        number = {name: index for index, name in enumerate(names)}
        near: list[set[int]] = [set() for _ in names]
        before = [0] * len(names)
        for name in layered(upstream):
            later = number[name]
            for earlier in (number[waited_for] for waited_for in upstream[name]):
                near[later].add(earlier)
                near[earlier].add(later)
                before[later] |= before[earlier] | (1 << earlier)
        return cls(names, near, before)

    def compose(self, members: list[int]) -> Part:
        if len(members) == 1:
            return self.names[members[0]]
        branches = self._branches(members)
        if len(branches) > 1:
            return Branches(tuple(map(self.compose, branches)))
        blocks = self._blocks(members)
        if len(blocks) == 1:
            inside = _bits(members)
            first = [member for member in members if not self.before[member] & inside]
            blocks = [first, [member for member in members if self.before[member] & inside]]
        parts = map(self.compose, blocks)
        return Series(tuple(inner for part in parts for inner in parts_in_series(part)))

    def _branches(self, members: list[int]) -> list[list[int]]:
        """Groups that do not wait for each other, by their first members' order.

        What stands between two members is a member too, so that neighbours tell it all.
        """
        left = set(members)
        groups: list[list[int]] = []
        for start in members:
            if start not in left:
                continue
            left.remove(start)
            group = [start]
            for member in group:  # It grows while it is read.
                reached = left.intersection(self.near[member])
                left -= reached
                group += reached
            groups.append(sorted(group))
        return groups

    def _blocks(self, members: list[int]) -> list[list[int]]:
        """Groups of which all of one comes before all of the next.

        In order of how many members come before each, a new block begins where all so far do.
        """
        inside = _bits(members)
        earlier = {member: (self.before[member] & inside).bit_count() for member in members}
        blocks: list[list[int]] = []
        for position, member in enumerate(sorted(members, key=earlier.__getitem__)):
            if earlier[member] == position or not blocks:
                blocks.append([])
            blocks[-1].append(member)
        return [sorted(block) for block in blocks]


def _bits(members: Iterable[int]) -> int:
    bits = 0
    for member in members:
        bits |= 1 << member
    return bits
