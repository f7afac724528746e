"""The ways through a state machine: which states follow each other, and on which conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from orchestration.errors import PipelineError, Problem

Literal_ = tuple[str, int]
"""A choice and the number of the rule that was taken; that of ``Default`` comes after the last."""
Clauses = frozenset[frozenset[Literal_]]
"""Ways to a state, each by what was chosen on it."""
MOST_WAYS: Final = 64


def successors(fields: Mapping[str, Any]) -> Iterator[tuple[str, int | None]]:
    """Yield the states that may follow, each with the number of a choice's rule."""
    if fields.get("Type") == "Choice":
        rules = fields.get("Choices", [])
        for number, rule in enumerate(rules):
            yield rule.get("Next", ""), number
        if "Default" in fields:
            yield fields["Default"], len(rules)
    elif "Next" in fields:
        yield fields["Next"], None


@dataclass
class Flow:
    """The states that an execution may reach without an error, each after those before it."""

    machine: Mapping[str, Any]
    order: list[str] = field(default_factory=list)
    looped: set[str] = field(default_factory=set)
    """States that may come after themselves."""
    caught: set[str] = field(default_factory=set)
    """States that only an error leads to."""
    ways: dict[str, Clauses] = field(default_factory=dict)
    _after: dict[str, set[str]] = field(default_factory=dict)
    """The states that may come after each."""

    def __post_init__(self) -> None:
        states = self.states
        self._after = {name: self._reached(name) for name in states}
        self.looped = {name for name in states if name in self._after[name]}
        start = str(self.machine.get("StartAt"))
        reached = {start, *self._after.get(start, ())}
        self.caught = set(states) - reached
        self.order = sorted((name for name in states if name in reached), key=self._earlier)
        self.ways = {name: frozenset() for name in self.order}
        self.ways[start] = frozenset([frozenset()])
        for name in self.order:
            around = self.loop(name)
            together = (self.ways[other] for other in {name, *around})
            self.ways[name] = self._simple(frozenset().union(*together), name)
            for following, number in successors(states[name]):
                if following in self.ways and following not in around:
                    way = frozenset() if number is None or around else {(name, number)}
                    longer = frozenset(clause | way for clause in self.ways[name])
                    self.ways[following] |= longer

    @property
    def states(self) -> Mapping[str, Any]:
        """The states of the machine."""
        states = self.machine.get("States", {})
        return {name: fields for name, fields in states.items() if isinstance(fields, Mapping)}

    def before(self, name: str) -> Iterator[str]:
        """Yield the states that a state may come right after."""
        for other in self.order:
            if name in (following for following, _ in successors(self.states[other])):
                yield other

    def loop(self, name: str) -> set[str]:
        """Return the states of the loop that a state stands in."""
        if name not in self.looped:
            return set()
        return {other for other in self._after[name] if name in self._after[other]}

    def _earlier(self, name: str) -> int:
        """Count the states before a state, those of its own loop left out."""
        around = self.loop(name)
        return sum(name in self._after[other] for other in self._after if other not in around)

    def _reached(self, name: str) -> set[str]:
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            for following, _ in successors(self.states.get(waiting.pop(), {})):
                if following not in seen and following in self.states:
                    seen.add(following)
                    waiting.append(following)
        return seen

    def _simple(self, clauses: Clauses, name: str) -> Clauses:
        """Return clauses without choices all of whose ways lead here."""
        if len(clauses) > MOST_WAYS:
            text = f"more than {MOST_WAYS} ways lead here, too many to say in a condition"
            raise PipelineError([Problem(f"States.{name}", text)])
        while True:
            shorter = self._shorter(clauses)
            kept = frozenset(c for c in shorter if not any(other < c for other in shorter))
            if kept == clauses:
                return kept
            clauses = kept

    def _shorter(self, clauses: Clauses) -> Clauses:
        made = set(clauses)
        for choice in {name for clause in clauses for name, _ in clause}:
            every = {number for _, number in successors(self.states[choice])}
            # Where no rule holds and there is no default, the execution fails.
            every.add(len(self.states[choice].get("Choices", [])))
            rests: dict[frozenset[Literal_], set[int]] = {}
            for clause in clauses:
                for name, number in clause:
                    if name == choice:
                        rests.setdefault(clause - {(name, number)}, set()).add(number)
            for rest, numbers in rests.items():
                if numbers >= every:
                    made = {c for c in made if not (rest < c and c - rest <= _all(choice, numbers))}
                    made.add(rest)
        return frozenset(made)


def _all(choice: str, numbers: set[int]) -> frozenset[Literal_]:
    return frozenset((choice, number) for number in numbers)
