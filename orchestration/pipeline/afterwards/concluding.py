"""The stages after a run's end, lowered: a graph, and what is done when that has ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
from orchestration.graph import RUN_FAILED, RUN_SUCCEEDED, Concluded, Graph, Kept, rewrite
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


@dataclass(frozen=True)
class Reads:
    """The outputs of ordinary stages that stages after the end, or their conditions, read."""

    succeeded: frozenset[Ref[object]]
    """Those that are read only after a run that succeeded."""
    ended: frozenset[Ref[object]]
    """Those that are read after any run, or after one that failed."""

    @classmethod
    def of(cls, pipeline: Description, conditions: Mapping[str, Conditions]) -> Reads:
        """Look what is read; ``conditions`` are those of all stages."""
        ordinary = {stage.name for stage in pipeline.stages}

        def read(stages: Iterable[Stage]) -> frozenset[Ref[object]]:
            trees = (
                tree
                for stage in stages
                for tree in (*(node for _, node in stage.references()), *conditions[stage.name])
            )
            nodes = (node for tree in trees for node in walk(tree))
            return frozenset(n for n in nodes if isinstance(n, Ref) and n.stage in ordinary)

        return cls(read(pipeline.on_success), read((*pipeline.on_failure, *pipeline.always)))


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
    kept: Mapping[Ref[object], Kept]
    """Those that are read whatever the run has come to."""

    def problems(self, fragments: Mapping[str, Fragment]) -> Iterator[Problem]:
        """Yield what shows only once the stages are lowered."""
        for name, fragment in fragments.items():
            if fragment.guard is not None:
                message = "creates something for the stages that read it, and here is none; remove"
                yield Problem("", f"{message} it", stage=name)
            if fragment.look is not None:
                message = "decides whether the run goes on, and here it is over; remove it"
                yield Problem("unless_unchanged", message, stage=name)
        yield from self._unreadable()

    def _unreadable(self) -> Iterator[Problem]:
        """Yield the outputs that are read and that can't be there."""
        looks = [name for name, each in self.lowered.fragments.items() if each.look is not None]
        for stage in self.pipeline.on_success:
            for path, node in stage.references():
                if isinstance(node, Ref) and node in self.values:
                    gates = (*looks, *self.lowered.gates[self.lowered.home(node).stage])
                    if gates:
                        yield Problem(path, _ended_before(node, gates[0]), stage=stage.name)
        fragments, home = self.lowered.fragments, self.lowered.home
        released = {ref for ref in self.kept if fragments[home(ref).stage].guard is not None}
        for stage in (*self.pipeline.on_failure, *self.pipeline.always):
            for path, node in stage.references():
                if isinstance(node, Ref) and node in released:
                    yield Problem(path, _released_before(node), stage=stage.name)

    def around(
        self, graph: Graph, fragments: Mapping[str, Fragment], direct: Mapping[str, frozenset[str]]
    ) -> Settled:
        """Return a graph with these stages after its end."""
        settled = Placement.of(self._lowered(fragments, direct)).settled()
        kept = {_named(ref): each for ref, each in sorted(self.kept.items(), key=_place)}
        end = Concluded(name=NAME, body=graph, conclusion=settled.graph, kept=kept)
        whole = Graph((end,))
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
            fragments={n: self._of_fragment(each, sections[n]) for n, each in fragments.items()},
            direct=direct,
            readers={name: frozenset(names) for name, names in readers.items()},
            shown=dict.fromkeys(fragments, ()),
            written=dict.fromkeys(fragments, ()),
            conditions={name: self._when(name, sections[name]) for name in fragments},
        )

    def _when(self, name: str, section: str) -> Conditions:
        state = _STATES.get(section)
        ended = () if state is None else (Compare("eq", Result(NAME, "state"), state),)
        return (*ended, *self._resolved(list(self.conditions[name]), section))

    def _of_fragment(self, fragment: Fragment, section: str) -> Fragment:
        gate = fragment.gate

        def resolved(tree: Any) -> Any:
            return self._resolved(tree, section)

        return replace(
            fragment,
            steps=tuple(rewrite(step, resolved) for step in fragment.steps),
            outputs=resolved(fragment.outputs),
            gate=None if gate is None else replace(gate, condition=resolved(gate.condition)),
            permissions=tuple(
                replace(each, resources=resolved(each.resources)) for each in fragment.permissions
            ),
        )

    def _resolved(self, tree: Any, section: str) -> Any:
        """Return a tree that reads how the run ended, and outputs of ordinary stages."""
        ordinary: Mapping[Ref[object], Tree] = self.values
        if section != ON_SUCCESS:
            ordinary = {ref: Result(NAME, _named(ref)) for ref in self.kept}

        def value(node: Expression[object]) -> Tree:
            match node:
                case RunOutcome(field):
                    return Result(NAME, field)
                case Ref() if node in ordinary:
                    return ordinary[node]
                case FirstOf(parts):
                    resolved = tuple(self._resolved(part, section) for part in parts)
                    return FirstOf(cast("Any", resolved))
                case _:
                    return node

        return substitute(tree, value)


def _named(ref: Ref[object]) -> str:
    """Return the output of the run's end that an output of an ordinary stage is kept as."""
    return f"{ref.stage}__{ref.output}"


def _place(item: tuple[Ref[object], Kept]) -> tuple[str, str]:
    ref, _ = item
    return ref.stage, ref.output


def _released_before(ref: Ref[object]) -> str:
    return f"what {ref.stage} creates is deleted before the end of a run; remove the reference"


def _ended_before(ref: Ref[object], gate: str) -> str:
    return (
        f"{gate} may end a run before {ref.stage}, and that run has succeeded without it; "
        f"move this to `stages`, where it is left out with {ref.stage}"
    )
