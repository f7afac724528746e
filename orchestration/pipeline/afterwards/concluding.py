"""The stages after a run's end, lowered: a graph, and what is done when that has ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from orchestration.errors import Problem
from orchestration.expressions import (
    Compare,
    FirstOf,
    Function,
    Result,
    RunOutcome,
    Tree,
    apply,
    substitute,
    walk,
)
from orchestration.graph import RUN_FAILED, RUN_SUCCEEDED, Concluded, Graph, rewrite
from orchestration.pipeline.afterwards.checking import NAME
from orchestration.pipeline.afterwards.sections import AFTER_END, ON_FAILURE, ON_SUCCESS
from orchestration.pipeline.conditions.inheriting import Conditions
from orchestration.pipeline.placing.lowered import Lowered
from orchestration.pipeline.placing.placement import Placement, Settled
from orchestration.refs import Expression, Ref

if TYPE_CHECKING:
    from orchestration.pipeline.description import Description
    from orchestration.stages import Context, Fragment, Stage

_STATES: Final = {ON_FAILURE: RUN_FAILED, ON_SUCCESS: RUN_SUCCEEDED}
"""The state of the runs that the stages of a field follow; the others follow every run."""


def last_stages(pipeline: Description) -> list[Stage]:
    """Return the stages after the end of a run."""
    return [stage for section in AFTER_END for stage in getattr(pipeline, section)]


def context(of: Context) -> Context:
    """Return the context of stages after the end: each attempt at a run creates its own things."""
    return replace(of, element=apply(Function.TEXT, Result(NAME, "attempt")))


def outputs_read(
    pipeline: Description, conditions: Mapping[str, Conditions]
) -> frozenset[Ref[object]]:
    """Return the outputs of ordinary stages that stages after the end, or their conditions, read.

    ``conditions`` are those of all stages.
    """
    ordinary = {stage.name for stage in pipeline.stages}
    nodes = (
        node
        for stage in last_stages(pipeline)
        for tree in (
            *(node for _, node in stage.references()),
            *conditions[stage.name],
        )
        for node in walk(tree)
    )
    return frozenset(node for node in nodes if isinstance(node, Ref) and node.stage in ordinary)


@dataclass(frozen=True)
class Conclusion:
    """The stages after the end of a run."""

    pipeline: Description
    lowered: Lowered
    """The ordinary stages."""
    conditions: Mapping[str, Conditions]
    """Of all stages."""
    values: Mapping[Ref[object], Tree]
    """The outputs of ordinary stages that are read, for a run that succeeded."""

    def problems(self, fragments: Mapping[str, Fragment]) -> Iterator[Problem]:
        """Yield what shows only once the stages are lowered."""
        for name, fragment in fragments.items():
            if fragment.guard is not None:
                message = "creates something for the stages that read it, and here is none; remove"
                yield Problem("", f"{message} it", stage=name)
            if fragment.look is not None:
                message = "decides whether the run goes on, and here it is over; remove it"
                yield Problem("unless_unchanged", message, stage=name)
        looks = [name for name, each in self.lowered.fragments.items() if each.look is not None]
        for stage in last_stages(self.pipeline):
            for path, node in stage.references():
                if isinstance(node, Ref) and node in self.values:
                    gates = (*looks, *self.lowered.gates[node.stage])
                    if gates:
                        yield Problem(path, _ended_before(node, gates[0]), stage=stage.name)

    def around(
        self, graph: Graph, fragments: Mapping[str, Fragment], direct: Mapping[str, frozenset[str]]
    ) -> Settled:
        """Return a graph with these stages after its end."""
        settled = Placement.of(self._lowered(fragments, direct)).settled()
        whole = Graph((Concluded(name=NAME, body=graph, conclusion=settled.graph),))
        return replace(settled, graph=whole)

    def _lowered(
        self, fragments: Mapping[str, Fragment], direct: Mapping[str, frozenset[str]]
    ) -> Lowered:
        sections = {
            stage.name: section
            for section in AFTER_END
            for stage in getattr(self.pipeline, section)
        }
        readers: dict[str, set[str]] = {name: set() for name in fragments}
        for stage in last_stages(self.pipeline):
            for _, node in stage.references():
                if isinstance(node, Ref) and node.stage in readers:
                    readers[node.stage].add(stage.name)
        return Lowered(
            fragments={name: self._of_fragment(each) for name, each in fragments.items()},
            direct=direct,
            readers={name: frozenset(names) for name, names in readers.items()},
            shown=dict.fromkeys(fragments, ()),
            written=dict.fromkeys(fragments, ()),
            conditions={name: self._when(name, sections[name]) for name in fragments},
        )

    def _when(self, name: str, section: str) -> Conditions:
        state = _STATES.get(section)
        ended = () if state is None else (Compare("eq", Result(NAME, "state"), state),)
        return (*ended, *(self._resolved(each) for each in self.conditions[name]))

    def _of_fragment(self, fragment: Fragment) -> Fragment:
        gate = fragment.gate
        return replace(
            fragment,
            steps=tuple(rewrite(step, self._resolved) for step in fragment.steps),
            outputs=self._resolved(fragment.outputs),
            gate=None if gate is None else replace(gate, condition=self._resolved(gate.condition)),
            permissions=tuple(
                replace(each, resources=self._resolved(each.resources))
                for each in fragment.permissions
            ),
        )

    def _resolved(self, tree: Any) -> Any:
        """Return a tree that reads how the run ended, and outputs of ordinary stages."""

        def value(node: Expression[object]) -> Tree:
            match node:
                case RunOutcome(field):
                    return Result(NAME, field)
                case Ref() if node in self.values:
                    return self.values[node]
                case FirstOf(parts):
                    return FirstOf(cast("Any", tuple(self._resolved(part) for part in parts)))
                case _:
                    return node

        return substitute(tree, value)


def _ended_before(ref: Ref[object], gate: str) -> str:
    return (
        f"{gate} may end a run before {ref.stage}, and that run has succeeded without it; "
        f"move this to `stages`, where it is left out with {ref.stage}"
    )
