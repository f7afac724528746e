"""The place of each stage: behind gates, and inside guards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from orchestration.errors import PipelineError, Problem
from orchestration.expressions import Tree
from orchestration.graph import Choose, Graph, Guarded, Step, upstream
from orchestration.stages import Fragment


@dataclass(frozen=True)
class Lowered:
    """The lowered stages, each after those that it waits for, and how they depend on each other."""

    fragments: Mapping[str, Fragment]
    direct: Mapping[str, frozenset[str]]
    """The stages that each stage waits for, without those that these wait for in turn."""
    readers: Mapping[str, frozenset[str]]
    """The stages that refer to each stage."""
    shown: Mapping[str, tuple[str, ...]]
    """The outputs of each stage that a run shows at its end."""
    written: Mapping[str, tuple[str, ...]]
    """The outputs of each stage that are the S3 URIs of what it writes."""

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The place of each stage in the order of lowering."""
        return {name: index for index, name in enumerate(self.fragments)}

    @cached_property
    def before(self) -> Mapping[str, frozenset[str]]:
        """All stages upstream of each stage."""
        before: dict[str, frozenset[str]] = {}
        for name in self.fragments:
            before[name] = self.direct[name].union(*(before[other] for other in self.direct[name]))
        return before

    @cached_property
    def gates(self) -> Mapping[str, tuple[str, ...]]:
        """The stages upstream of each stage that may stop it, in order."""
        gates: dict[str, tuple[str, ...]] = {}
        for name in self.fragments:
            stopping = {other for other in self.direct[name] if self._stops(other)}
            gates[name] = self.ordered(stopping.union(*(gates[o] for o in self.direct[name])))
        return gates

    def _stops(self, stage: str) -> bool:
        gate = self.fragments[stage].gate
        return gate is not None and gate.on_miss == "stop"

    def ordered(self, stages: Iterable[str]) -> tuple[str, ...]:
        """Some stages, in the order of lowering."""
        return tuple(sorted(stages, key=self.position.__getitem__))

    def between(self, guard: str, members: Iterable[str]) -> frozenset[str]:
        """The members, and what comes after one of them (or the guard) and before another."""
        last = frozenset(members)
        first = last | {guard}
        earlier = frozenset[str]().union(*(self.before[name] for name in last))
        between = {name for name in earlier if not first.isdisjoint(self.before[name])}
        return (last | between) - {guard}

    def are_entangled(self, stages: frozenset[str], others: frozenset[str]) -> bool:
        """Return whether some of each group come after some of the other."""
        return any(not others.isdisjoint(self.before[name]) for name in stages) and any(
            not stages.isdisjoint(self.before[name]) for name in others
        )


@dataclass(frozen=True)
class Placement:
    """Lowered stages, and which of them stand inside which guard."""

    stages: Lowered
    guarded: Mapping[str, frozenset[str]]
    """The stages inside a stage's guard, except those inside a further guard in there."""

    @classmethod
    def of(cls, stages: Lowered) -> Placement:
        """Place lowered stages."""
        inside = _inside_guards(stages)
        exclusive = {
            guard: members.difference(*(inside[name] for name in members if name in inside))
            for guard, members in inside.items()
        }
        return cls(stages, exclusive)

    def graph(self) -> Graph:
        """The graph of all stages."""
        return self._graph(self.stages.fragments, frozenset())

    def outputs(self) -> dict[str, Tree]:
        """Return the outputs that a run shows, of the stages that every successful run reaches."""
        return {
            name: {output: fragment.outputs[output] for output in self.stages.shown[name]}
            for name, fragment in self.stages.fragments.items()
            if self.stages.shown[name] and not self.stages.gates[name]
        }

    def written(self) -> dict[str, Tree]:
        """The S3 URIs of what stages write, as ``stage.output``."""
        return {
            f"{name}.{output}": fragment.outputs[output]
            for name, fragment in self.stages.fragments.items()
            for output in self.stages.written[name]
        }

    def _graph(self, stages: Iterable[str], passed: frozenset[str]) -> Graph:
        """The graph of some stages, behind gates that are passed already."""
        members = self.stages.ordered(stages)
        inside = {name for guard in members for name in self.guarded.get(guard, ())}
        free: list[Step] = []
        waiting: dict[str, tuple[str, ...]] = {}
        for name in members:
            if name in inside:
                continue
            if gates := tuple(gate for gate in self.stages.gates[name] if gate not in passed):
                waiting[name] = gates
            else:
                free += self._stage(name, passed)
        gated = self._behind(waiting)
        return Graph((*free, *(self._gated(gate, names, passed) for gate, names in gated.items())))

    def _stage(self, name: str, passed: frozenset[str]) -> tuple[Step, ...]:
        fragment = self.stages.fragments[name]
        if fragment.guard is None:
            return fragment.steps
        inner = self._graph(self.guarded[name], passed)
        body = Graph((*fragment.steps, *inner.steps))
        return (
            Guarded(
                name=f"{name}.guard",
                acquire=fragment.guard.acquire,
                body=saved(body, fragment.guard.saving),
                cleanup=fragment.guard.cleanup,
                swept=fragment.guard.swept,
            ),
        )

    def _gated(self, gate: str, heads: list[str], passed: frozenset[str]) -> Choose:
        fragment = self.stages.fragments[gate]
        if fragment.gate is None:
            raise PipelineError([Problem("", "has no gate", stage=gate)])
        members = frozenset[str]().union(*(self._whole(name) for name in heads))
        return Choose(
            # A stage stands behind a gate only once, so the first one's name makes it unique.
            name=f"{gate}.passed_{heads[0]}",
            condition=fragment.gate.condition,
            then=self._graph(members, passed | {gate}),
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


def _inside_guards(stages: Lowered) -> dict[str, frozenset[str]]:
    """The stages inside each guard, those inside a further guard in there included."""
    guards = sorted(
        (name for name, fragment in stages.fragments.items() if fragment.guard is not None),
        # What may be stopped by fewer gates lives around what may be stopped by more.
        key=lambda name: len(stages.gates[name]),
    )
    if unused := [guard for guard in guards if not stages.readers[guard]]:
        raise PipelineError([_unused(guard) for guard in unused])
    if stopped := [problem for guard in guards for problem in _unsaved(guard, stages)]:
        raise PipelineError(stopped)
    inside = {guard: stages.between(guard, stages.readers[guard]) for guard in guards}
    while (grown := _grown(inside, stages)) != inside:
        inside = grown
    for guard, members in inside.items():
        _check_runs_whenever(guard, members, stages)
    return inside


def _unused(guard: str) -> Problem:
    message = "creates a file system that no stage reads, only to delete it again"
    remedy = f"give a channel {{kind: fsx_lustre, file_system: {{ref: {guard}.file_system}}}}"
    return Problem("", f"{message}; {remedy}, or leave the stage out", stage=guard)


def _unsaved(guard: str, stages: Lowered) -> Iterator[Problem]:
    """Yield the guard that saves what perhaps nobody has written."""
    fragment, own = stages.fragments[guard], frozenset(stages.gates[guard])
    if fragment.guard is None or not fragment.guard.saving.steps:
        return
    stopped = [frozenset(stages.gates[name]) - own for name in stages.readers[guard]]
    if gates := frozenset[str]().union(*stopped) if all(stopped) else frozenset():
        names = ", ".join(sorted(gates))
        message = f"{names} may stop every stage that reads it, and then there is nothing to save"
        yield Problem("", f"{message}; add after: [{names}]", stage=guard)


def _grown(inside: Mapping[str, frozenset[str]], stages: Lowered) -> dict[str, frozenset[str]]:
    """The stages inside each guard, with those that the ones inside already bring along."""
    guards = list(inside)
    grown: dict[str, frozenset[str]] = {}
    for position, guard in enumerate(guards):
        members = set(inside[guard])
        for other in guards[position + 1 :]:
            theirs = inside[other] | {other}
            if members & theirs or stages.are_entangled(frozenset(members | {guard}), theirs):
                # Two things needed at once: the later one lives inside the earlier one.
                members |= theirs
        members |= _brought_by_branches(guard, inside[guard], stages)
        grown[guard] = stages.between(guard, members)
    return grown


def _brought_by_branches(guard: str, members: frozenset[str], stages: Lowered) -> set[str]:
    """The stages that come along with members that run in a branch inside the guard.

    What depends on such a member can only be in there too, and so can what it depends on and is in
    a branch itself.
    """
    own = frozenset(stages.gates[guard])
    brought: set[str] = set()
    for name in members:
        if own.issuperset(stages.gates[name]):
            continue
        brought |= {later for later, before in stages.before.items() if name in before}
        brought |= {n for n in stages.before[name] if not own.issuperset(stages.gates[n])}
    return brought


def _check_runs_whenever(guard: str, members: frozenset[str], stages: Lowered) -> None:
    """Refuse what would silently not run because the guard that it got into does not."""
    own = set(stages.gates[guard])
    for name in sorted(members):
        free = own.difference(stages.gates[name])
        if free and stages.fragments[name].guard is None:
            raise PipelineError(
                [
                    Problem(
                        "",
                        f"shares what {guard!r} creates with stages that {', '.join(sorted(free))} "
                        "may stop, and does not wait for it; add after: "
                        f"[{', '.join(sorted(free))}], or give it a file system of its own",
                        stage=name,
                    )
                ]
            )
