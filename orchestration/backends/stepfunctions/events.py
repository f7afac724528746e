"""The events that an execution may write into its history, counted before it costs anything.

An execution ends, without a ``Catch``, when it has written 25,000 events, those of inline Maps and
of branches included: https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
Counted is the longest way through a definition on which no request fails, with each loop as often
as its list allows and every poll that the time-outs allow. A list that nothing limits counts as one
element. The requests of a call that waits for capacity are sent in as many rounds as its time
allows. A job that ``.sync`` waits for is polled only where a response was lost; that is counted
for one job of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from operator import itemgetter
from typing import Any, Final

from orchestration.backends.stepfunctions.beginning import overlapping
from orchestration.backends.stepfunctions.calls.rounds import (
    MOST_POLLS_WAITING,
    interval_s,
    most_rounds,
)
from orchestration.backends.stepfunctions.integrations.choosing import is_synchronous
from orchestration.backends.stepfunctions.names import MOST_POLLS, state
from orchestration.backends.stepfunctions.states import following
from orchestration.errors import Problem
from orchestration.expressions import Json
from orchestration.graph import (
    Call,
    Graph,
    Workflow,
    all_steps,
    bodies,
    candidates,
    most_elements,
)

MOST_EVENTS: Final = 25_000
RESERVE: Final = 2_500
"""Kept for what fails: a request that is sent again writes three events more."""
_LEAST_POLLS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The counted quantity that each part of a definition writes."""

    start_and_end: int
    task: int
    synchronous: int
    around_machines: int
    """Of a Map or a Parallel state: entered, started, succeeded, exited."""
    iteration: int
    fail: int
    other: int
    round: int
    """One more poll: Task, Choice and Wait."""
    request: int
    """One more request that finds no capacity: Task and Choice, and the look for its job."""
    between_rounds: int
    """Choice, Wait and Choice."""
    next_page: int
    """One more page of a listing: Task and Choice."""


EVENTS: Final = Weights(
    start_and_end=2, task=5, synchronous=6, around_machines=4, iteration=2, fail=1, other=2,
    round=9, request=15, between_rounds=6, next_page=7,
)  # fmt: skip
TRANSITIONS: Final = Weights(
    start_and_end=0, task=1, synchronous=1, around_machines=1, iteration=0, fail=1, other=1,
    round=3, request=4, between_rounds=3, next_page=2,
)  # fmt: skip
"""States entered, which Step Functions bills, without what is tried again."""


@dataclass(frozen=True, slots=True)
class Count:
    """The most events of a definition, each job being polled once, and what comes on top."""

    once: int
    loops: Mapping[str, tuple[int, int]]
    """Of each loop: the most elements, and the events of all of them."""
    polls: Sequence[tuple[int, int]]
    """Of each job that is polled: how often it may run, and the polls that its time allows."""
    pages: Mapping[str, int] = field(default_factory=dict)
    """Of each listing: the events of its pages after the first."""
    rounds: Mapping[str, int] = field(default_factory=dict)
    """Of each call that waits for capacity: the events of its rounds after the first."""
    weights: Weights = EVENTS

    def total(self, most_polls: int = MOST_POLLS) -> int:
        """Return the most events where no job is polled more often than this."""
        polls = sum(times * min(allowed, most_polls) for times, allowed in self.polls)
        return self.once + self.weights.round * polls

    @property
    def most_polls(self) -> int:
        """The polls that each job may have, so that the events of all suffice."""
        most, least = MOST_POLLS, _LEAST_POLLS
        if self.total(most) <= MOST_EVENTS - RESERVE:
            return most
        while most - least > 1:
            middle = (most + least) // 2
            if self.total(middle) <= MOST_EVENTS - RESERVE:
                least = middle
            else:
                most = middle
        return least


def counted(
    definition: Mapping[str, Json],
    workflow: Workflow,
    *,
    weights: Weights = EVENTS,
    elements: Mapping[str, int] | None = None,
) -> Count:
    """Count the events of a workflow's definition.

    `weights`: :data:`TRANSITIONS` to count those instead. `elements`: of loops that are expected to
    have fewer than they may have.
    """
    calls = {step.name: step for step in all_steps(workflow.graph) if isinstance(step, Call)}
    limits = {name: most or 1 for name, most in most_elements(workflow.graph).items()}
    limits |= elements or {}
    machines = _Machines({state(name): limit for name, limit in limits.items()}, weights)
    once = machines.longest(definition) + weights.start_and_end
    pages = {
        name: weights.next_page * (call.pages.most - 1)
        for name, call in calls.items()
        if call.pages is not None
    }
    rounds = {
        name: times for name, times in _rounds_again(workflow.graph, 1, limits, weights) if times
    }
    once += sum(pages.values()) + sum(rounds.values()) + _queued(definition, weights)
    loops = {name: (limit, machines.loops.get(state(name), 0)) for name, limit in limits.items()}
    polls = [*_polls(workflow, workflow.graph, 1, limits), *_adopted(workflow)]
    return Count(once, loops, polls, pages, rounds, weights)


def _queued(definition: Mapping[str, Any], weights: Weights) -> int:
    """Return the events of the looks of a run that waits for older ones."""
    # What is billed is what a run usually needs, and few wait.
    if overlapping.WAITING not in definition["States"] or weights is not EVENTS:
        return 0
    return overlapping.MOST_LOOKS * (2 * weights.task + 3 * weights.other)


def exceeded(count: Count) -> Iterator[Problem]:
    """Yield the step, or the whole, that makes a definition write more events than it may."""
    total = count.total(count.most_polls)
    if total <= MOST_EVENTS - RESERVE:
        return
    ending = (
        f"a run may write {total} events, and Step Functions ends an execution at {MOST_EVENTS} "
        f"({RESERVE} are kept for retries)"
    )
    advice = "divide the pipeline into two"
    parts = [*_parts(count)]
    if not parts:
        yield Problem("", f"{ending}; {advice}")
        return
    events, name, words = max(parts, key=itemgetter(0))
    yield Problem(
        name, f"{ending}; {events} of them are {words}{advice}, or run it on Airflow or directly"
    )


def _parts(count: Count) -> Iterator[tuple[int, str, str]]:
    """Yield what repeats itself: its events, its step, and what it is and how it becomes less."""
    for name, (limit, events) in count.loops.items():
        holding = f"whose list holds up to {limit} elements; let it hold fewer"
        yield events, name, f"this loop's, {holding}, "
    for name, events in count.pages.items():
        yield events, name, "for the pages of this listing; "
    for name, events in count.rounds.items():
        rounds = "the rounds in which this waits for capacity; wait for fewer hours"
        yield events, name, f"for {rounds}, "


@dataclass(frozen=True, slots=True)
class _Machines:
    limits: Mapping[str, int]
    """The most elements of each Map state."""
    weights: Weights
    loops: dict[str, int] = field(default_factory=dict)
    """The events of each Map state that was counted."""

    def longest(self, machine: Mapping[str, Any]) -> int:
        """Return the events of the longest way through a machine; circles are not gone round."""
        states, start = machine["States"], machine["StartAt"]
        longest: dict[str, int] = {}
        path = {start}
        stack = [(start, iter(_onwards(states[start])))]
        while stack:
            name, ways = stack[-1]
            deeper = next((way for way in ways if way not in longest and way not in path), None)
            if deeper is not None:
                path.add(deeper)
                stack.append((deeper, iter(_onwards(states[deeper]))))
                continue
            stack.pop()
            path.remove(name)
            after = [longest[way] for way in _onwards(states[name]) if way in longest]
            longest[name] = self._own(name, states[name]) + max(after, default=0)
        return longest[start]

    def _own(self, name: str, state: Mapping[str, Any]) -> int:
        match state["Type"]:
            case "Task":
                synchronous = state["Resource"].endswith(".sync")
                return self.weights.synchronous if synchronous else self.weights.task
            case "Parallel":
                return self.weights.around_machines + sum(map(self.longest, state["Branches"]))
            case "Map":
                each = self.weights.iteration + self.longest(state["ItemProcessor"])
                elements = self.limits.get(name, 1)
                self.loops[name] = self.weights.around_machines + elements * each
                return self.loops[name]
            case "Fail":
                return self.weights.fail
            case _:
                return self.weights.other


def _onwards(state: Mapping[str, Any]) -> list[str]:
    """Return the states that a state may go on to; an error with a name may be an answer."""
    catchers = [c for c in state.get("Catch", []) if "States.ALL" not in c["ErrorEquals"]]
    return following({**state, "Catch": catchers})


def _polls(
    workflow: Workflow, graph: Graph, times: int, limits: Mapping[str, int]
) -> Iterator[tuple[int, int]]:
    for step in graph.steps:
        if isinstance(step, Call):
            requests = candidates(step)
            for call in requests:
                if call.until is not None and not is_synchronous(call, workflow.integrations):
                    yield times * _tries(call), _rounds(call)
                    if rounds := most_rounds(call):
                        # Each takes its share of the time in which all of them wait.
                        share = ceil(MOST_POLLS_WAITING / rounds / len(requests))
                        yield times * rounds, share
        for body in bodies(step):
            yield from _polls(workflow, body, times * limits.get(step.name, 1), limits)


def _adopted(workflow: Workflow) -> Iterator[tuple[int, int]]:
    """Yield the polls of the one job, of those that ``.sync`` waits for, that may need most."""
    rounds = [
        _rounds(call)
        for step in all_steps(workflow.graph)
        if isinstance(step, Call)
        for call in candidates(step)
        if call.until is not None
        and call.adopt is not None
        and is_synchronous(call, workflow.integrations)
    ]
    if rounds:
        yield 1, max(rounds)


def _rounds_again(
    graph: Graph, times: int, limits: Mapping[str, int], weights: Weights
) -> Iterator[tuple[str, int]]:
    """Yield calls and the events of their rounds after the first one, of those that wait."""
    for step in graph.steps:
        if isinstance(step, Call):
            each = weights.between_rounds + weights.request * len(candidates(step))
            again = (_tries(step) - 1) * weights.request
            yield step.name, times * (most_rounds(step) * each + again)
        for body in bodies(step):
            yield from _rounds_again(body, times * limits.get(step.name, 1), limits, weights)


def _tries(call: Call) -> int:
    return 1 if call.adopt is None else call.adopt.tries


def _rounds(call: Call) -> int:
    until = call.until
    if until is None:
        return 1
    seconds = until.timeout_s if call.within is None else min(until.timeout_s, call.within.seconds)
    rounds = min(MOST_POLLS, max(1, ceil(seconds / interval_s(call))))
    # A Task waits for a person, with up to twice the events of a Wait in each round.
    return rounds if until.person is None else 2 * rounds
