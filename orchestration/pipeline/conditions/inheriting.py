"""The conditions under which each stage runs: its own, and those of the stages that it reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from orchestration.expressions import All, Any, Compare, FirstOf, Not, walk
from orchestration.refs import Expression, Ref

References: TypeAlias = Iterable[tuple[str, Expression[object]]]
"""Every expression of a stage, each part of one too, with its path."""
Conditions: TypeAlias = tuple[Expression[bool], ...]
"""Conditions that must all hold."""


def needed(references: References) -> list[tuple[str, Ref[object]]]:
    """Return the outputs that a stage can't do without: all but those in a ``first_of``."""
    every: Counter[tuple[str, Ref[object]]] = Counter()
    inside: Counter[tuple[str, Ref[object]]] = Counter()
    for path, node in references:
        if isinstance(node, Ref):
            every[path, node] += 1
        elif isinstance(node, FirstOf):
            inside.update((path, part) for part in walk(node) if isinstance(part, Ref))
    return list(every - inside)


def strict(condition: Expression[object]) -> Expression[bool]:
    """Return a condition in which every output and parameter is compared, as values may be known.

    An output may be a constant, and only expressions stand in and, or and not.
    """
    match condition:
        case All(parts):
            return All(tuple(map(strict, parts)))
        case Any(parts):
            return Any(tuple(map(strict, parts)))
        case Not(part):
            return Not(strict(part))
        case Compare():
            return condition
        case _:
            return Compare("eq", condition, True)


def inherited(
    own: Mapping[str, Expression[bool] | None], needs: Mapping[str, Iterable[str]]
) -> dict[str, Conditions]:
    """Return all conditions of each stage: its own, and those of the stages that it needs.

    Stages that need each other are reported elsewhere; here each counts once.
    """
    known: dict[str, Conditions] = {}

    def of(stage: str, around: frozenset[str]) -> Conditions:
        if stage not in known:
            mine = own.get(stage)
            conditions = {} if mine is None else {strict(mine): None}
            for other in needs.get(stage, ()):
                if other not in around:
                    conditions |= dict.fromkeys(of(other, around | {stage}))
            known[stage] = tuple(conditions)
        return known[stage]

    for stage in own:
        of(stage, frozenset([stage]))
    return known
