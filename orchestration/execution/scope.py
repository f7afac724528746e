"""Scopes: the values that a performance reads, with those of the scopes around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from typing_extensions import override

from orchestration.execution.effects import Outputs
from orchestration.expressions import Environment, Json, evaluate
from orchestration.graph import Kept


@dataclass(frozen=True, slots=True)
class Own(Environment):
    """An environment in which a call sees what its own response gave."""

    outer: Environment
    step: str
    outputs: Outputs

    @override
    def result(self, step: str, output: str) -> Json:
        if step == self.step and output in self.outputs:
            return self.outputs[output]
        return self.outer.result(step, output)

    @override
    def parameter(self, name: str) -> Json:
        return self.outer.parameter(name)

    @override
    def run(self) -> str:
        return self.outer.run()

    @override
    def attempt(self) -> int:
        return self.outer.attempt()

    @override
    def item(self) -> Json:
        return self.outer.item()


@dataclass(slots=True)
class Scope(Environment):
    """The values that the steps of one graph see: their own results, and those around them."""

    outer: Environment
    results: dict[str, Outputs] = field(default_factory=dict)
    element: tuple[Json] | None = None
    """The element of the enclosing loop, where this is the scope of one."""
    prefix: str = ""
    """The beginning of steps' paths: the loops' elements around them, ``evaluate.each[2]/``."""
    ended: dict[str, Outputs] = field(default_factory=dict)
    """The results of all steps that have ended well, wherever they stand but for loops.

    They outlive a failure, unlike the results of a graph that has not come to its end.
    """

    def path(self, step: str) -> str:
        """Return the path of a step in here."""
        return f"{self.prefix}{step}"

    def inner(self) -> Scope:
        """Return a scope for steps that run side by side with others."""
        return Scope(self, prefix=self.prefix, ended=self.ended)

    def at(self, loop: str, index: int, element: Json) -> Scope:
        """Return a scope for one element of a loop."""
        return Scope(self, element=(element,), prefix=f"{self.prefix}{loop}[{index}]/")

    def leave(self, step: str, outputs: Outputs) -> None:
        """Take in the results of a step that has ended well."""
        self.results[step] = self.ended[step] = outputs

    def adopt(self, other: Mapping[str, Outputs]) -> None:
        """Take over the results of a scope that has ended."""
        self.results.update(other)

    @override
    def result(self, step: str, output: str) -> Json:
        results = self.results.get(step)
        if results is not None and output in results:
            return results[output]
        return self.outer.result(step, output)

    @override
    def parameter(self, name: str) -> Json:
        return self.outer.parameter(name)

    @override
    def run(self) -> str:
        return self.outer.run()

    @override
    def attempt(self) -> int:
        return self.outer.attempt()

    @override
    def item(self) -> Json:
        return self.outer.item() if self.element is None else self.element[0]


def kept_values(
    kept: Mapping[str, Kept], ended: Mapping[str, Outputs], around: Environment
) -> dict[str, Json]:
    """Return the values that outlive a body; null where one of their steps has not ended well."""
    inner = Scope(around, results=dict(ended))
    return {
        name: evaluate(each.value, inner) if ended.keys() >= set(each.steps) else None
        for name, each in kept.items()
    }
