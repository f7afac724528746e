"""The order of things that wait for each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping


def layered(before: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """The names so that each comes after those before it, in as few layers as possible.

    Names of one layer keep the order of the mapping. What stands on a circle, or behind one, is
    left out. Takes time in proportion to the names and what they wait for.

    >>> layered({"c": frozenset("a"), "a": frozenset(), "b": frozenset()})
    ('a', 'b', 'c')
    """
    position = {name: index for index, name in enumerate(before)}
    missing = {name: len(names) for name, names in before.items()}
    after: defaultdict[str, list[str]] = defaultdict(list)
    for name, names in before.items():
        for earlier in names:
            after[earlier].append(name)
    order: list[str] = []
    layer = [name for name, count in missing.items() if count == 0]
    while layer:
        order += layer
        following = []
        for later in (later for name in layer for later in after[name]):
            missing[later] -= 1
            if missing[later] == 0:
                following.append(later)
        layer = sorted(following, key=position.__getitem__)
    return tuple(order)


def circle(before: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """The names on a circle, the first one again at the end; empty where there is none."""
    left = before.keys() - set(layered(before))
    if not left:
        return ()
    # Every name left waits for another one left, so following them must come round.
    path = [min(left)]
    while (following := min(before[path[-1]] & left)) not in path:
        path.append(following)
    return (*path[path.index(following) :], following)
