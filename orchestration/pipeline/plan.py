"""Which stages stand where: behind which gates, inside which guards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestration.errors import PipelineError, Problem
from orchestration.expressions import Tree
from orchestration.graph import Choose, Graph, Guarded, Step, upstream
from orchestration.stages import Fragment


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The stages lowered, and which of them stand inside which."""

    order: tuple[str, ...]
    before: Mapping[str, frozenset[str]]
    """All stages upstream of a stage, not only the next."""
    fragments: Mapping[str, Fragment]
    guarded: Mapping[str, frozenset[str]]
    """The stages inside a stage's guard, those inside a further guard in there left out."""

    def gates(self, stage: str) -> tuple[str, ...]:
        """The stages before a stage whose miss stops it, in order."""
        return _gates(stage, self.order, self.before, self.fragments)

    def graph(self, stages: Iterable[str], passed: frozenset[str] = frozenset()) -> Graph:
        """The graph of some stages, behind gates that are passed already."""
        given = [name for name in self.order if name in set(stages)]
        inside = {name for guard in given for name in self.guarded.get(guard, ())}
        free: list[Step] = []
        waiting: dict[str, tuple[str, ...]] = {}
        for name in given:
            if name in inside:
                continue
            if gates := tuple(g for g in self.gates(name) if g not in passed):
                waiting[name] = gates
            else:
                free += self._stage(name, passed)
        gated = self._behind(waiting)
        return Graph((*free, *(self._gated(gate, names, passed) for gate, names in gated.items())))

    def outputs(self) -> dict[str, Tree]:
        """What a run shows: the outputs of the stages that every successful run reaches."""
        return {
            name: {output: self.fragments[name].outputs[output] for output in shown}
            for name in self.order
            if (shown := self.fragments[name].shown) and not self.gates(name)
        }

    def _stage(self, name: str, passed: frozenset[str]) -> tuple[Step, ...]:
        fragment = self.fragments[name]
        if fragment.guard is None:
            return fragment.steps
        inner = self.graph(self.guarded[name], passed)
        return (
            Guarded(
                name=f"{name}.guard",
                acquire=fragment.guard.acquire,
                body=Graph((*fragment.steps, *inner.steps)),
                cleanup=fragment.guard.cleanup,
            ),
        )

    def _gated(self, gate: str, heads: list[str], passed: frozenset[str]) -> Choose:
        decision = self.fragments[gate].gate
        if decision is None:
            raise PipelineError([Problem(f"stages.{gate}", "has no gate")])
        members = frozenset[str]().union(*(self._whole(name) for name in heads))
        return Choose(
            # A stage stands behind a gate only once, so the first one's name makes it unique.
            name=f"{gate}.passed_{heads[0]}",
            condition=decision.condition,
            then=self.graph(members, passed | {gate}),
            otherwise=Graph(),
            after=leaves(self.fragments[gate]),
        )

    def _whole(self, name: str) -> frozenset[str]:
        inside = self.guarded.get(name, frozenset())
        return frozenset([name]).union(*(self._whole(member) for member in inside))

    def _behind(self, waiting: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
        """The gate that each stage goes behind: what depends on each other goes behind the same.

        Nothing outside of a branch reads what runs inside, so it has to be a gate of all of them.
        """
        groups: list[list[str]] = []
        for name in waiting:
            touching = [g for g in groups if any(self._linked(name, other) for other in g)]
            groups = [g for g in groups if g not in touching]
            groups.append([n for n in waiting if n == name or any(n in g for g in touching)])
        behind: dict[str, list[str]] = {}
        for group in groups:
            first = waiting[group[0]]
            common = [gate for gate in first if all(gate in waiting[name] for name in group)]
            if not common:
                raise PipelineError([self._apart(group, waiting)])
            behind.setdefault(common[0], []).extend(group)
        return {
            gate: [n for n in waiting if n in behind[gate]] for gate in self.order if gate in behind
        }

    def _linked(self, one: str, other: str) -> bool:
        a, b = self._whole(one), self._whole(other)
        return any(b & self.before[name] for name in a) or any(a & self.before[name] for name in b)

    def _apart(self, group: list[str], waiting: Mapping[str, tuple[str, ...]]) -> Problem:
        parts = "; ".join(f"{name} waits for {', '.join(waiting[name])}" for name in group)
        return Problem(
            f"stages.{group[-1]}",
            "depends on stages that go on after different evaluations, either of which may stop "
            f"its own ({parts}); let one evaluation follow the other, or give one of them "
            "on_miss: fail",
        )


def plan(
    fragments: Mapping[str, Fragment],
    direct: Mapping[str, frozenset[str]],
    readers: Mapping[str, frozenset[str]],
) -> Plan:
    """The plan of lowered stages.

    ``direct`` holds the stages that each waits for, ``readers`` those that refer to each.
    """
    ordered = tuple(fragments)
    before = upstream_of(direct, ordered)
    guards = sorted(
        (name for name in ordered if fragments[name].guard is not None),
        # What may be stopped by fewer gates lives around what may be stopped by more.
        key=lambda name: len(_gates(name, ordered, before, fragments)),
    )
    inside = {guard: _between(guard, readers[guard], before) for guard in guards}
    while (grown := _grown(inside, ordered, before, fragments)) != inside:
        inside = grown
    for guard, members in inside.items():
        _runs_whenever(guard, members, ordered, before, fragments)
    exclusive = {
        guard: members.difference(*(inside[other] for other in guards if other in members))
        for guard, members in inside.items()
    }
    return Plan(order=ordered, before=before, fragments=fragments, guarded=exclusive)


def upstream_of(
    direct: Mapping[str, frozenset[str]], ordered: Iterable[str]
) -> dict[str, frozenset[str]]:
    """All stages before each stage, of stages in an order where each comes after what it needs."""
    before: dict[str, frozenset[str]] = {}
    for name in ordered:
        before[name] = direct[name].union(*(before[other] for other in direct[name]))
    return before


def leaves(fragment: Fragment) -> tuple[str, ...]:
    """The steps of a stage that none of its other steps waits for: when they are over, it is."""
    read = {name for names in upstream(Graph(fragment.steps)).values() for name in names}
    return tuple(step.name for step in fragment.steps if step.name not in read)


def _gates(
    stage: str,
    ordered: Iterable[str],
    before: Mapping[str, frozenset[str]],
    fragments: Mapping[str, Fragment],
) -> tuple[str, ...]:
    return tuple(name for name in ordered if name in before[stage] and _stops(fragments[name]))


def _stops(fragment: Fragment) -> bool:
    return fragment.gate is not None and fragment.gate.on_miss == "stop"


def _grown(
    inside: Mapping[str, frozenset[str]],
    ordered: tuple[str, ...],
    before: Mapping[str, frozenset[str]],
    fragments: Mapping[str, Fragment],
) -> dict[str, frozenset[str]]:
    """The stages inside each guard, with those that the ones inside already bring along."""
    guards = list(inside)
    grown: dict[str, frozenset[str]] = {}
    for position, guard in enumerate(guards):
        members = set(inside[guard])
        for other in guards[position + 1 :]:
            theirs = inside[other] | {other}
            if members & theirs or _each_waits(members | {guard}, theirs, before):
                # Two things needed at once: the later one lives inside the earlier one.
                members |= theirs
        own = set(_gates(guard, ordered, before, fragments))
        branched = {n for n in ordered if set(_gates(n, ordered, before, fragments)) - own}
        for name in inside[guard] & branched:
            # It runs in a branch inside the guard. What depends on it can only be in there too, and
            # so can what it depends on and is in a branch itself.
            members |= {later for later in ordered if name in before[later]}
            members |= before[name] & branched
        grown[guard] = _between(guard, members, before)
    return grown


def _each_waits(
    one: Iterable[str], other: Iterable[str], before: Mapping[str, frozenset[str]]
) -> bool:
    """Whether some of each come after some of the other."""
    a, b = frozenset(one), frozenset(other)
    return any(before[name] & b for name in a) and any(before[name] & a for name in b)


def _between(
    guard: str, members: Iterable[str], before: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """The members, and what comes after one of them (or the guard) and before another."""
    last = set(members)
    between = {
        name
        for name in before
        if before[name] & (last | {guard}) and any(name in before[member] for member in last)
    }
    return frozenset((last | between) - {guard})


def _runs_whenever(
    guard: str,
    members: frozenset[str],
    ordered: tuple[str, ...],
    before: Mapping[str, frozenset[str]],
    fragments: Mapping[str, Fragment],
) -> None:
    """Refuse what would silently not run because the guard that it got into does not."""
    own = set(_gates(guard, ordered, before, fragments))
    for name in sorted(members):
        free = own - set(_gates(name, ordered, before, fragments))
        if free and fragments[name].guard is None:
            raise PipelineError(
                [
                    Problem(
                        f"stages.{name}",
                        f"shares what {guard!r} creates with stages that {', '.join(sorted(free))} "
                        "may stop, and does not wait for it; add after: "
                        f"[{', '.join(sorted(free))}], or give it a file system of its own",
                    )
                ]
            )
