"""The requests that runs of a pipeline send, with the values that are known before any run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestration.deploy.permissions.patterns import ANY, Known, listings, pattern
from orchestration.expressions import Json, Parameter, Tree
from orchestration.graph import (
    Call,
    ForEach,
    Graph,
    Operation,
    Workflow,
    all_steps,
    bodies,
    candidates,
)
from orchestration.refs import Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request of a step."""

    step: str
    operation: Operation
    values: Mapping[str, Any]
    """The request; text that only a run knows has :data:`~.patterns.ANY` in it."""
    role: str = ""
    """The ARN of the role that is assumed for it; empty: none."""
    turn: int = 0
    """0 for a step's own request, n for its n-th alternative."""
    turns: int = 1
    """The number of requests of the step, alternatives included."""
    at_once: int = 1
    """The number of it that may be under way at the same time."""

    @property
    def name(self) -> str:
        """The operation's name: ``CreateTrainingJob``."""
        return self.operation.name

    @property
    def calls(self) -> str:
        """The step and its operation, for people to read."""
        number = f" (alternative {self.turn})" if self.turn else ""
        return f"{self.step}{number} calls {self.operation.service}:{self.operation.name}"

    def at(self, *path: str | int) -> Any:
        """Return the value at a path; ``None`` if there is none, or only a run knows it."""
        return known(_at(self.values, path))

    def tree(self, *path: str | int) -> Tree:
        """Return what stands at a path before values are put in."""
        found: Tree = _at(self.operation.request, path)
        return found


def requests(
    workflow: Workflow, runs: Sequence[Mapping[str, Json]]
) -> tuple[tuple[Request, ...], frozenset[str]]:
    """List the distinct requests of runs with these parameters, and parameters without a value."""
    graph = workflow.graph
    steps = {step.name: step for step in all_steps(graph)}
    every: dict[str, Request] = {}
    missing: set[str] = set()
    for parameters in runs:
        known_now = Known(
            parameters=parameters, listings=listings(graph), steps=steps, missing=missing
        )
        for request in _of_graph(graph, known_now, 1):
            every.setdefault(f"{request.step} {request.turn} {request.values!r}", request)
    return tuple(every.values()), frozenset(missing)


def known(value: Any) -> Any:
    """Return a value, or ``None`` if a part of it is known to a run only."""
    return None if isinstance(value, str) and ANY in value else value


def _of_graph(graph: Graph, known_now: Known, at_once: int) -> Iterator[Request]:
    for step in graph.steps:
        if isinstance(step, Call):
            every = candidates(step)
            for turn, candidate in enumerate(every):
                values = resolved(candidate.operation.request, known_now)
                yield Request(
                    step=step.name,
                    operation=candidate.operation,
                    values=values,
                    role=pattern(candidate.operation.assumes, known_now),
                    turn=turn,
                    turns=len(every),
                    at_once=at_once,
                )
        elif isinstance(step, ForEach):
            most = min(step.max_concurrency, step.at_most or step.max_concurrency)
            if isinstance(step.items, list | tuple):
                most = min(most, len(step.items))
            inside = replace(known_now, items=step.items)
            yield from _of_graph(step.body, inside, at_once * max(1, most))
        else:
            for body in bodies(step):
                yield from _of_graph(body, known_now, at_once)


def resolved(tree: Any, known_now: Known) -> Any:
    """Return a tree with the values that are known; other expressions become patterns."""
    if isinstance(tree, Mapping):
        return {key: resolved(value, known_now) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [resolved(value, known_now) for value in tree]
    if isinstance(tree, Parameter) and known_now.parameters.get(tree.name) is not None:
        return known_now.parameters[tree.name]
    if isinstance(tree, Expression):
        return pattern(tree, known_now)
    return tree


def _at(tree: Any, path: Sequence[str | int]) -> Any:
    for part in path:
        if isinstance(tree, Mapping):
            tree = tree.get(part)
        elif isinstance(tree, list | tuple) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
        else:
            return None
    return tree
