"""Bounds that a graph sets on itself before it runs: how many elements its loops can have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from orchestration.expressions import Result, Tree
from orchestration.graph.steps import Call, ForEach, Graph
from orchestration.graph.walking import all_steps
from orchestration.refs import Expression

_PAGE: Final = 1000
"""Entries that S3 lists where a request does not say how many."""


def most_elements(graph: Graph) -> dict[str, int | None]:
    """Return the most elements of each loop, by its step; ``None`` where nothing limits them."""
    calls = {step.name: step for step in all_steps(graph) if isinstance(step, Call)}
    return {
        step.name: step.at_most or _listed(step.items, calls)
        for step in all_steps(graph)
        if isinstance(step, ForEach)
    }


def _listed(items: Tree, calls: Mapping[str, Call]) -> int | None:
    if isinstance(items, Result) and items.step in calls:
        operation = calls[items.step].operation
        if operation.name == "ListObjectsV2":
            most = operation.request.get("MaxKeys", _PAGE)
            return most if isinstance(most, int) else _PAGE
    if isinstance(items, Sequence) and not isinstance(items, str | Expression):
        return len(items)
    return None
