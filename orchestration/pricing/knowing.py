"""Values of requests as far as they are known before a run, and the multiples they are paid in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from orchestration.errors import ExpressionError
from orchestration.expressions import Json, Tree, evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import most_elements, stage_of
from orchestration.graph.steps import ForEach, Graph
from orchestration.pricing.assumptions import Assumptions


@dataclass(frozen=True, slots=True)
class Times:
    """The times that something is done; ``None``: not known before the run."""

    expected: float | None = 1.0
    most: float | None = 1.0

    def __mul__(self, other: Times) -> Times:
        """Return how often something is done within something that is done so often."""
        return Times(times(self.expected, other.expected), times(self.most, other.most))


def times(one: float | None, other: float | None) -> float | None:
    """Multiply; the product with what is not known is not known."""
    return None if one is None or other is None else one * other


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The values of a workflow that are known before it runs."""

    region: str
    parameters: Mapping[str, Json]
    assumptions: Assumptions
    bounds: Mapping[str, int | None]
    """The most elements of each loop."""
    item: Json = None
    """The element that the loop around is at."""

    @classmethod
    def of(
        cls, graph: Graph, region: str, parameters: Mapping[str, Json], assumptions: Assumptions
    ) -> Known:
        """Return what is known of a graph."""
        return cls(
            region=region,
            parameters=parameters,
            assumptions=assumptions,
            bounds=most_elements(graph),
        )

    def value(self, tree: Tree) -> Json:
        """Return the value of a tree; ``None`` where it is not known before the run."""
        environment = Values({}, self.parameters, current=self.item)
        try:
            return evaluate(tree, environment)
        except ExpressionError:
            return None

    def number(self, tree: Tree) -> float | None:
        """Return a number that a tree is, if it is known."""
        value = self.value(tree)
        if isinstance(value, str):
            try:
                return float(value)
            except ValueError:
                return None
        return float(value) if isinstance(value, int | float) else None

    def text(self, tree: Tree) -> str | None:
        """Return a text that a tree is, if it is known."""
        value = self.value(tree)
        return value if isinstance(value, str) else None

    def elements(self, loop: ForEach) -> list[Json] | None:
        """Return the elements of a loop, if they are known."""
        value = self.value(loop.items)
        return value if isinstance(value, list) else None

    def at(self, element: Json) -> Known:
        """Return what is known inside a loop, at one of its elements."""
        return replace(self, item=element)

    def count(self, loop: ForEach) -> Times:
        """Return how many elements a loop has whose list is not known."""
        assumed = self.assumptions.of(stage_of(loop.name), "elements")
        bound = self.bounds.get(loop.name)
        if bound is None:
            return Times(assumed, assumed)
        return Times(None if assumed is None else min(assumed, bound), float(bound))
