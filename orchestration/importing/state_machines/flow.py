"""The ways through a state machine: which states follow each other, and on which conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from orchestration.errors import PipelineError, Problem
from orchestration.lint.machines import Machine, State

Literal_ = tuple[str, int]
"""The place of a choice and the number of the rule that was taken, ``Default`` after the last.

Of a loop with several ends: the place of one of its states, and the number of the end. Of a state
that waits for somebody: its place, and ``GATE``.
"""
GATE: Final = -1
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


def place(state: State) -> str:
    """Return the path of a state in the user's file."""
    return state.path.strip("/").replace("/", ".").replace("~1", "/").replace("~0", "~")


@dataclass
class Flow:
    """The states that an execution may reach without an error, each after those before it."""

    machine: Machine
    order: list[str] = field(default_factory=list)
    looped: set[str] = field(default_factory=set)
    """States that may come after themselves."""
    caught: set[str] = field(default_factory=set)
    """States that only an error leads to."""
    fled: set[str] = field(default_factory=set)
    """States that only the end of a loop leads to, after which the execution fails."""
    ways: dict[str, Clauses] = field(default_factory=dict)
    _after: dict[str, set[str]] = field(default_factory=dict)
    """The states that may come after each."""

    def __post_init__(self) -> None:
        states = self.states
        self._after = {name: self._reached(name, self._following) for name in states}
        self.looped = {name for name in states if name in self._after[name]}
        start = str(self.machine.fields.get("StartAt"))
        self.caught = set(states) - {start, *self._after.get(start, ())}
        reached = {start, *self._reached(start, self._kept)}
        self.fled = set(states) - reached - self.caught
        self.order = sorted((name for name in states if name in reached), key=self._earlier)
        self.ways = {name: frozenset() for name in self.order}
        self.ways[start] = frozenset([frozenset()])

    def entered(self, name: str) -> Clauses:
        """Return the ways to a state, once all states before it were left."""
        together = (self.ways[other] for other in {name, *self.loop(name)})
        self.ways[name] = self._simple(frozenset().union(*together), name)
        return self.ways[name]

    def left(self, name: str, gates: Iterable[Literal_]) -> None:
        """Follow the ways out of a state, on which gates were passed in it or in its loop."""
        passed = frozenset(gates)
        for following, literal in self._onward(name):
            way = passed if literal is None else passed | {literal}
            self.ways[following] |= frozenset(clause | way for clause in self.ways[name])

    def _onward(self, name: str) -> Iterator[tuple[str, Literal_ | None]]:
        """Yield the states after a state, out of its loop, with what was chosen on the way."""
        around, ends = self.loop(name), self.ends(name)
        for following, number in successors(self.states[name]):
            if not around and following in self.ways:
                own = place(self.machine.states[name])
                yield following, None if number is None else (own, number)
            elif following in ends:
                several = (self.looped_place(name), ends.index(following))
                yield following, several if len(ends) > 1 else None

    def ends(self, name: str) -> list[str]:
        """Return the states that the loop around a state leads to, but those that only fail."""
        around = self.loop(name)
        return [
            other
            for other in self.states
            if any(other in self._following(inner) for inner in around)
            and other not in around
            and not self._fails(other)
        ]

    def looped_place(self, name: str) -> str:
        """Return the place of the first state of a loop."""
        around = self.loop(name)
        return next(place(s) for s in self.machine.states.values() if s.name in around)

    def _fails(self, name: str) -> bool:
        """Return whether an execution that comes to a state can only fail."""
        return not any(
            self.states[each].get("End") or self.states[each].get("Type") == "Succeed"
            for each in (name, *self._after[name])
        )

    def _following(self, name: str) -> list[str]:
        following = [each for each, _ in successors(self.states[name])]
        return [each for each in following if each in self.states]

    def _kept(self, name: str) -> list[str]:
        """Return the states after a state, without those that a loop fails with."""
        around = self.loop(name)
        return [
            each
            for each in self._following(name)
            if not around or each in around or not self._fails(each)
        ]

    @property
    def states(self) -> Mapping[str, Any]:
        """The states of the machine."""
        return {name: state.fields for name, state in self.machine.states.items()}

    def after(self, name: str) -> set[str]:
        """Return the states that may come after a state, at any distance."""
        return self._after[name]

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

    @staticmethod
    def _reached(name: str, following: Callable[[str], list[str]]) -> set[str]:
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            new = set(following(waiting.pop())) - seen
            seen |= new
            waiting += new
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
        for choice in {name for clause in clauses for name, number in clause if number != GATE}:
            every = set(range(self._count(choice)))
            rests: dict[frozenset[Literal_], set[int]] = {}
            for clause in clauses:
                for name, number in clause:
                    if name == choice and number != GATE:
                        rests.setdefault(clause - {(name, number)}, set()).add(number)
            for rest, numbers in rests.items():
                if numbers >= every:
                    made = {c for c in made if not (rest < c and c - rest <= _all(choice, numbers))}
                    made.add(rest)
        return frozenset(made)

    def _count(self, choice: str) -> int:
        """Count the ways out of a choice, or out of a loop."""
        name = next(s.name for s in self.machine.states.values() if place(s) == choice)
        if name in self.looped:
            return len(self.ends(name))
        # Where no rule holds and there is no default, the execution fails: a way, too.
        return len(self.states[name].get("Choices", [])) + 1


def _all(choice: str, numbers: set[int]) -> frozenset[Literal_]:
    return frozenset((choice, number) for number in numbers)
