"""Proofs about conditions, by trying all ways in which their comparisons can turn out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Final

from orchestration.expressions import All, Any, Compare, Not
from orchestration.expressions.nodes import Comparison
from orchestration.refs import Expression

_MOST: Final = 12
"""Comparisons to try all ways of."""
_OPPOSITES: Final[Mapping[Comparison, Comparison]] = {"ne": "eq", "lt": "ge", "le": "gt"}


def always_holds(condition: Expression[bool]) -> bool:
    """Return whether a condition holds in every run, as far as its form shows that."""
    atoms = list(dict.fromkeys(_atoms(condition)))
    if len(atoms) > _MOST:
        return False
    ways = itertools.product((True, False), repeat=len(atoms))
    return all(_holds(condition, dict(zip(atoms, way, strict=True))) for way in ways)


def _plain(node: Expression[bool]) -> tuple[Expression[object], bool]:
    """Return the comparison that a node stands for, and whether it is that or its opposite."""
    if not isinstance(node, Compare):
        return node, True
    is_same = node.op not in _OPPOSITES
    plain = Compare(_OPPOSITES.get(node.op, node.op), node.left, node.right)
    if plain.op == "eq" and isinstance(plain.right, bool) and isinstance(plain.left, Expression):
        return plain.left, is_same == plain.right
    return plain, is_same


def _atoms(node: Expression[bool]) -> Iterator[Expression[object]]:
    match node:
        case All(parts) | Any(parts):
            for part in parts:
                yield from _atoms(part)
        case Not(part):
            yield from _atoms(part)
        case _:
            yield _plain(node)[0]


def _holds(node: Expression[bool], way: Mapping[Expression[object], bool]) -> bool:
    match node:
        case All(parts):
            return all(_holds(part, way) for part in parts)
        case Any(parts):
            return any(_holds(part, way) for part in parts)
        case Not(part):
            return not _holds(part, way)
        case _:
            plain, is_same = _plain(node)
            return way[plain] == is_same
