"""The place of each stage: behind gates, and inside guards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from orchestration.errors import PipelineError, Problem
from orchestration.expressions import All, Tree
from orchestration.graph import (
    Choose,
    Graph,
    Guarded,
    Kept,
    Parallel,
    Permission,
    Step,
    bodies,
    upstream,
)
from orchestration.pipeline.placing.guards import inside_guards
from orchestration.pipeline.placing.lowered import Lowered
from orchestration.pipeline.placing.settling import GATE, Settling, condition_of
from orchestration.refs import Expression, Ref
from orchestration.stages import Fragment


@dataclass(frozen=True, slots=True)
class Settled:
    """All stages in one graph, without references between them."""

    graph: Graph
    outputs: Mapping[str, Tree]
    """The outputs that a run shows; those of stages that did not run are null."""
    written: Mapping[str, Tree]
    """The S3 URIs of what stages write, as ``stage.output``."""
    permissions: Mapping[str, tuple[Permission, ...]]
    read: Mapping[Ref[object], Tree]
    """The outputs that are read after the end; those of stages that did not run are null."""
    kept: Mapping[Ref[object], Kept]
    """The outputs that are read after the end of any run, whatever it came to."""


@dataclass(frozen=True, slots=True)
class _Passed:
    """The gates and conditions that hold wherever some stages stand."""

    gates: frozenset[str] = frozenset()
    conditions: frozenset[Expression[bool]] = frozenset()


@dataclass(frozen=True)
class Placement:
    """Lowered stages, and which of them stand inside which guard."""

    stages: Lowered
    guarded: Mapping[str, frozenset[str]]
    """The stages inside a stage's guard, except those inside a further guard in there."""

    @classmethod
    def of(cls, stages: Lowered) -> Placement:
        """Place lowered stages."""
        inside = inside_guards(stages)
        exclusive = {
            guard: members.difference(*(inside[name] for name in members if name in inside))
            for guard, members in inside.items()
        }
        return cls(stages, exclusive)

    def settled(
        self, read: Iterable[Ref[object]] = (), kept: Iterable[Ref[object]] = ()
    ) -> Settled:
        """Put all stages into one graph, and resolve their references.

        ``read`` are the outputs that are read after the end of a run that succeeded, ``kept`` after
        that of any; in whichever order they come, the graph is the same.
        """
        read, kept = (sorted(refs, key=_named) for refs in (read, kept))
        graph = self._graph(self.stages.fragments, _Passed())
        outputs: dict[str, dict[str, Tree]] = {}
        for name, fragment in self.stages.fragments.items():
            gate = {} if fragment.gate is None else {GATE: fragment.gate.condition}
            outputs[name] = {**fragment.outputs, **gate}
        outputs |= {name: dict(found) for name, found in self.stages.aliases.items()}
        settling = Settling.of(graph, self._choices(), outputs)
        whole = settling.graph(graph)
        shown: dict[str, Tree] = {
            name: {output: Ref(name, output) for output in names}
            for name, names in self.stages.shown.items()
            if names
        }
        written = {
            f"{name}.{output}": settling.of_stage(name, Ref(name, output))
            for name, names in self.stages.written.items()
            for output in names
        }
        return Settled(
            outputs=settling.tree(shown, sure=False),
            read={ref: settling.tree(ref, sure=False) for ref in read},
            kept={
                ref: Kept(
                    value=settling.inside(home),
                    steps=ends(Graph(self.stages.fragments[home.stage].steps)),
                )
                for ref, home in ((ref, self.stages.home(ref)) for ref in kept)
            },
            written=written,
            permissions={
                name: tuple(
                    replace(permission, resources=settling.of_stage(name, permission.resources))
                    for permission in fragment.permissions
                )
                for name, fragment in self.stages.fragments.items()
                if fragment.permissions
            },
            graph=settling.collecting(whole),
        )

    def _choices(self) -> frozenset[str]:
        """The names that choices between stages may have."""
        conditions, fragments = self.stages.conditions, self.stages.fragments
        gates = [name for name, fragment in fragments.items() if fragment.gate is not None]
        return frozenset(
            [
                *(condition_of(name) for name in fragments if conditions[name]),
                *(_gate_of(gate, name) for gate in gates for name in fragments),
            ]
        )

    def _graph(self, stages: Iterable[str], passed: _Passed) -> Graph:
        """The graph of some stages, behind gates and conditions that are passed already."""
        members = self.stages.ordered(stages)
        inside = {name for guard in members for name in self.guarded.get(guard, ())}
        free: list[Step] = []
        waiting: dict[str, tuple[str, ...]] = {}
        for name in members:
            if name in inside:
                continue
            gates = tuple(gate for gate in self.stages.gates[name] if gate not in passed.gates)
            if gates:
                waiting[name] = gates
            else:
                free += self._conditional(name, passed)
        gated = self._behind(waiting)
        return Graph((*free, *(self._gated(gate, names, passed) for gate, names in gated.items())))

    def _conditional(self, name: str, passed: _Passed) -> tuple[Step, ...]:
        """Return a stage's steps, in a choice where the stage may be skipped."""
        conditions = self.stages.conditions[name]
        open_ones = tuple(each for each in conditions if each not in passed.conditions)
        steps = self._stage(name, replace(passed, conditions=passed.conditions.union(conditions)))
        if not open_ones:
            return steps
        whole = open_ones[0] if len(open_ones) == 1 else All(open_ones)
        choice = Choose(
            name=condition_of(name), condition=whole, then=Graph(steps), otherwise=Graph()
        )
        return (choice,)

    def _stage(self, name: str, passed: _Passed) -> tuple[Step, ...]:
        fragment = self.stages.fragments[name]
        if fragment.guard is None:
            return fragment.steps
        inner = self._graph(self.guarded[name], passed)
        body = Graph((*fragment.steps, *inner.steps))
        clock = fragment.guard.clock
        return (
            *(() if clock is None else (clock,)),
            Guarded(
                name=f"{name}.guard",
                acquire=fragment.guard.acquire,
                body=saved(body, fragment.guard.saving),
                cleanup=fragment.guard.cleanup,
                swept=fragment.guard.swept,
            ),
        )

    def _gated(self, gate: str, heads: list[str], passed: _Passed) -> Choose:
        fragment = self.stages.fragments[gate]
        if fragment.gate is None:
            raise PipelineError([Problem("", "has no gate", stage=gate)])
        members = frozenset[str]().union(*(self._whole(name) for name in heads))
        return Choose(
            # A stage stands behind a gate only once, so the first one's name makes it unique.
            name=_gate_of(gate, heads[0]),
            # A stage that was skipped stops nothing: its gate is then as if it were passed.
            condition=cast("Expression[bool]", Ref(gate, GATE)),
            then=self._graph(members, replace(passed, gates=passed.gates | {gate})),
            otherwise=Graph(),
            after=leaves(fragment, upstream(Graph(fragment.steps))),
        )

    def _whole(self, name: str) -> frozenset[str]:
        inside = self.guarded.get(name, frozenset())
        return frozenset([name]).union(*(self._whole(member) for member in inside))

    def _behind(self, waiting: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
        """The stages behind each gate: those that depend on each other go behind the same.

        Nothing outside a branch reads what runs inside, so it must be a gate of all of them.
        """
        behind: dict[str, list[str]] = {}
        for group in self._groups(waiting):
            common = [
                gate for gate in waiting[group[0]] if all(gate in waiting[name] for name in group)
            ]
            if not common:
                raise PipelineError([_apart(group, waiting)])
            behind.setdefault(common[0], []).extend(group)
        gates = self.stages.ordered(behind)
        return {gate: list(self.stages.ordered(behind[gate])) for gate in gates}

    def _groups(self, names: Iterable[str]) -> list[tuple[str, ...]]:
        """Groups of stages that do not depend on each other."""
        groups: list[tuple[frozenset[str], frozenset[str], frozenset[str]]] = []
        for name in names:
            heads, members = frozenset([name]), self._whole(name)
            needed = frozenset[str]().union(*(self.stages.before[member] for member in members))
            apart = []
            for group in groups:
                if members.isdisjoint(group[2]) and needed.isdisjoint(group[1]):
                    apart.append(group)
                else:
                    heads, members, needed = heads | group[0], members | group[1], needed | group[2]
            groups = [*apart, (heads, members, needed)]
        return [self.stages.ordered(heads) for heads, _, _ in groups]


def _gate_of(stage: str, first: str) -> str:
    """Return the name of a choice by a stage's gate, behind which another one comes first."""
    return f"{stage}.passed_{first}"


def saved(body: Graph, saving: Graph) -> Graph:
    """The body with steps that wait for all of its others."""
    read = frozenset[str]().union(*upstream(body).values())
    ends = tuple(step.name for step in body.steps if step.name not in read)
    before = upstream(saving)
    steps = (s if before[s.name] else replace(s, after=(*s.after, *ends)) for s in saving.steps)
    return Graph((*body.steps, *steps))


def leaves(fragment: Fragment, before: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """The steps of a stage that none of its other steps waits for: when they are over, it is."""
    read = {name for names in before.values() for name in names}
    return tuple(step.name for step in fragment.steps if step.name not in read)


def ends(graph: Graph) -> tuple[str, ...]:
    """The steps with which a graph is over: those inside of what only holds others."""
    read = frozenset[str]().union(*upstream(graph).values())
    last: list[str] = []
    for step in graph.steps:
        if step.name not in read:
            inner = bodies(step) if isinstance(step, Parallel | Guarded) else ()
            last += [name for body in inner for name in ends(body)] or [step.name]
    return tuple(last)


def _apart(group: Iterable[str], waiting: Mapping[str, tuple[str, ...]]) -> Problem:
    parts = "; ".join(f"{name} waits for {', '.join(waiting[name])}" for name in group)
    *_, last = group
    return Problem(
        "",
        "depends on stages that go on after different evaluations, either of which may stop "
        f"its own ({parts}); let one evaluation follow the other, or give one of them "
        "on_miss: fail",
        stage=last,
    )


def _named(ref: Ref[object]) -> tuple[str, str]:
    return ref.stage, ref.output
