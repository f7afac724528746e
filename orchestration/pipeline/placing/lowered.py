"""Lowered stages, and how they depend on each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from orchestration.pipeline.conditions.inheriting import Conditions
from orchestration.refs import Ref
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
    conditions: Mapping[str, Conditions]
    """The conditions that must hold for each stage to run, those of what it reads included."""
    aliases: Mapping[str, Mapping[str, Ref[object]]] = field(default_factory=dict)
    """Outputs of stages that run together, as those of their whole group."""

    def home(self, ref: Ref[object]) -> Ref[object]:
        """Return the output of the lowered stage, or group, that a reference means."""
        return self.aliases[ref.stage][ref.output] if ref.stage in self.aliases else ref

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
