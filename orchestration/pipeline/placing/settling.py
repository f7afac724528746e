"""References to outputs of stages, resolved once it is known where each stage stands.

A stage behind a condition or a gate leaves its outputs through the choice that it stands in: its
readers inside take them directly, all others from what the choice collects.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, cast

from orchestration.errors import ExpressionError, PipelineError, Problem
from orchestration.expressions import FirstOf, Function, Result, Tree, apply, substitute, walk
from orchestration.graph import Call, Choose, Graph, Guarded, Step, rewrite, stage_of
from orchestration.refs import Expression, Ref

Chain: TypeAlias = tuple[str, ...]
"""The choices around a step, outermost first."""

GATE: Final = "gate__"
"""The output of a stage by which its gate is read; no stage has an output of this name."""


@dataclass
class Settling:
    """Resolves references between the stages of one graph."""

    outputs: Mapping[str, Mapping[str, Tree]]
    """The outputs of each stage, which may refer to those of others."""
    choices: frozenset[str]
    """The choices whether stages run; stages may have others of their own."""
    places: Mapping[str, Chain]
    """The choices around each step."""
    homes: Mapping[str, Chain]
    """The choices around each stage."""
    _collected: dict[str, dict[str, tuple[Tree, Tree]]] = field(default_factory=dict)
    _known: dict[tuple[Ref[object], Chain], Tree] = field(default_factory=dict)

    @classmethod
    def of(
        cls, graph: Graph, choices: frozenset[str], outputs: Mapping[str, Mapping[str, Tree]]
    ) -> Settling:
        """Look where the steps of a graph stand."""
        places = dict(_places(graph, choices, ()))
        homes: dict[str, Chain] = {}
        for step, chain in places.items():
            if step not in choices:
                homes.setdefault(stage_of(step), chain)
        return cls(outputs, choices, places, homes)

    def graph(self, graph: Graph, here: Chain = ()) -> Graph:
        """Return a graph with its references resolved."""
        return Graph(tuple(self._step(step, here) for step in graph.steps))

    def tree(self, tree: Any, here: Chain = (), *, sure: bool = True) -> Any:
        """Resolve the references in a tree.

        ``sure`` says that it is only read where the stages that it refers to have run.
        """

        def value(node: Expression[object]) -> Tree:
            if isinstance(node, Ref):
                # One that is none of these is of the graph around, which resolves it.
                return self._output(node, here, sure=sure) if node.stage in self.outputs else node
            if isinstance(node, FirstOf):
                parts = tuple(self.tree(part, here, sure=False) for part in node.parts)
                if any(isinstance(part, Ref) for part in parts):
                    return FirstOf(parts)
                return apply(Function.FIRST_OF, *parts)
            return node

        return substitute(tree, value)

    def inside(self, ref: Ref[object]) -> Tree:
        """Return an output as it is read where its stage stands."""
        return self._output(ref, self.homes.get(ref.stage, ()), sure=True)

    def of_stage(self, stage: str, tree: Any) -> Any:
        """Resolve what belongs to a stage; absent where the stage's own condition does not hold."""
        home = self.homes.get(stage, ())
        if home and home[-1] == condition_of(stage):
            return self.tree(tree, home[:-1], sure=False)
        return self.tree(tree, home)

    def collecting(self, graph: Graph) -> Graph:
        """Return the graph with all that is read of its choices, once everything is resolved."""
        return Graph(tuple(self._with_outputs(step) for step in graph.steps))

    def _with_outputs(self, step: Step) -> Step:
        if isinstance(step, Guarded):
            return replace(step, body=self.collecting(step.body))
        if not isinstance(step, Choose) or step.name not in self.choices:
            return step
        outputs = self._collected.get(step.name, {})
        return replace(
            step,
            then=self.collecting(step.then),
            collect={name: then for name, (then, _) in outputs.items()},
            absent={name: absent for name, (_, absent) in outputs.items()},
        )

    def _output(self, ref: Ref[object], here: Chain, *, sure: bool) -> Tree:
        home = self.homes.get(ref.stage, ())
        shared = _common(home, here)
        tree = self.outputs[ref.stage][ref.output]
        if shared == len(home) or (sure and not _has_results(tree)):
            if (ref, here) not in self._known:
                self._known[ref, here] = self.tree(tree, here)
            return self._known[ref, here]
        choice = home[shared]
        own = stage_of(choice) == ref.stage
        name = ref.output if own else f"{ref.stage}__{ref.output}"
        collected = self._collected.setdefault(choice, {})
        if name not in collected:
            absent = True if ref.output == GATE else None
            collected[name] = (self._output(ref, home[: shared + 1], sure=False), absent)
        return Result(choice, name)

    def _step(self, step: Step, here: Chain) -> Step:
        def tree(old: Any) -> Any:
            return self.tree(old, here)

        try:
            if isinstance(step, Choose) and step.name in self.choices:
                inner = self.graph(step.then, (*here, step.name))
                whole: Step = replace(step, condition=tree(step.condition), then=inner)
            elif isinstance(step, Guarded):
                acquire = cast(Call, self._step(step.acquire, here))
                cleanup = Graph(tuple(rewrite(each, tree) for each in step.cleanup.steps))
                body = self.graph(step.body, here)
                whole = replace(step, acquire=acquire, body=body, cleanup=cleanup)
            else:
                whole = rewrite(step, tree)
        except ExpressionError as error:
            raise PipelineError([Problem("", str(error), stage=stage_of(step.name))]) from error
        return replace(whole, after=tuple(dict.fromkeys(self._seen(n, here) for n in step.after)))

    def _seen(self, step: str, here: Chain) -> str:
        """Return what to wait for so that a step is over: itself, or a choice around it."""
        place = self.places.get(step, ())
        shared = _common(place, here)
        return step if shared == len(place) else place[shared]


def condition_of(stage: str) -> str:
    """Return the name of the choice whether a stage runs."""
    return f"{stage}.when"


def _places(graph: Graph, choices: frozenset[str], here: Chain) -> Iterator[tuple[str, Chain]]:
    for step in graph.steps:
        yield step.name, here
        match step:
            case Choose(name=name) if name in choices:
                yield from _places(step.then, choices, (*here, name))
            case Guarded():
                yield step.acquire.name, here
                yield from _places(step.body, choices, here)
            case _:
                pass


def _common(one: Chain, other: Chain) -> int:
    """Return the number of choices that two chains begin with in common."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _has_results(tree: Tree) -> bool:
    return any(isinstance(node, Result) for node in walk(tree))
