"""Control flow as states: branches, loops, guards, and what runs side by side.

What runs side by side always runs to its end. A branch or iteration therefore catches its own
error and gives it back as data, ``{"error": …, "cause": …}``; the run fails
after the join, with the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final, assert_never

from orchestration.backends.jsonata import Kind, condition, enclosed, field_value, render, tree
from orchestration.backends.stepfunctions import calls
from orchestration.backends.stepfunctions.facts import exported, rows
from orchestration.backends.stepfunctions.names import Scope, state, variable
from orchestration.backends.stepfunctions.states import State, States, choice, fail, failed_as
from orchestration.expressions import Json, Tree
from orchestration.graph import (
    Call,
    Choose,
    Fail,
    ForEach,
    Graph,
    Guarded,
    Parallel,
    Read,
    Require,
    Step,
    Wait,
    upstream,
)
from orchestration.graph.composition import (
    Part,
    Series,
    compose,
    leaves,
    parts_in_series,
    spine,
)
from orchestration.refs import Expression

Given = Callable[[Scope], Json]
"""What a machine of its own gives back, by where its results are."""

_CAUGHT: Final[dict[str, Json]] = {
    "error": "{% $states.errorOutput.Error %}",
    # A task that timed out has no cause.
    "cause": "{% '' & $states.errorOutput.Cause %}",
}


def steps(graph: Graph, scope: Scope, states: States, following: str) -> str:
    """Write a graph's states into a machine; the first one's name comes back."""
    return _Graph(graph, states).write(scope, following)


def seen(graph: Graph, scope: Scope) -> Scope:
    """A scope that sees a graph's results, after it."""
    return _Graph(graph, States()).seen(scope)


@dataclass(frozen=True, slots=True)
class _Graph:
    graph: Graph
    states: States

    def seen(self, scope: Scope) -> Scope:
        """A scope that sees what all parts leave behind."""
        for part in self._parts():
            scope = self._after(part, scope)
        return scope

    def write(self, scope: Scope, following: str) -> str:
        """Write the parts from the last to the first, each seeing what is before it."""
        scopes = [scope]
        parts = self._parts()
        for part in parts:
            scopes.append(self._after(part, scopes[-1]))
        for part, before in zip(reversed(parts), reversed(scopes[:-1]), strict=True):
            following = self._part(part, before, following)
        return following

    def _parts(self) -> tuple[Part, ...]:
        if not self.graph.steps:
            return ()
        names = [step.name for step in self.graph.steps]
        return parts_in_series(compose(names, upstream(self.graph)))

    def _named(self) -> dict[str, Step]:
        return {step.name: step for step in self.graph.steps}

    def _after(self, part: Part, scope: Scope) -> Scope:
        if isinstance(part, str):
            return _after(self._named()[part], scope)
        inside = exported(self._steps(part), scope.facts)
        return _carried(_Together.of(part).results, inside, scope)

    def _steps(self, part: Part) -> tuple[Step, ...]:
        names = set(leaves(part))
        return tuple(step for step in self.graph.steps if step.name in names)

    def _part(self, part: Part, scope: Scope, following: str) -> str:
        if isinstance(part, str):
            return _step(self._named()[part], scope, self.states, following)
        if isinstance(part, Series):
            raise ValueError("a series inside a series is flat")
        graphs = [Graph(self._steps(inner)) for inner in part.parts]
        return _side_by_side(_Together.of(part), graphs, scope, self.states, following)


@dataclass(frozen=True, slots=True)
class _Together:
    """The names of what runs side by side."""

    state: str
    results: str
    """The variable that holds the results of the steps inside."""

    @staticmethod
    def of(part: Part) -> _Together:
        """The names after the first step inside; what begins with more branches is numbered."""
        depth = spine(part)
        helper = "Together" if depth == 1 else f"Together{depth}"
        first = next(iter(leaves(part)))
        return _Together(state(first, helper), variable(first, helper))

    @staticmethod
    def named(step: Parallel) -> _Together:
        """The names of a step that says itself what runs side by side."""
        return _Together(state(step.name), variable(step.name, "Results"))


def _carried(holder: str, results: Sequence[str], scope: Scope) -> Scope:
    return scope.extended({step: f"${holder}.{variable(step)}" for step in results})


def _after(step: Step, scope: Scope) -> Scope:
    match step:
        case Call() | Read() | ForEach():
            return scope.extended({step.name: f"${variable(step.name)}"})
        case Parallel():
            inside = tuple(inner for branch in step.branches for inner in branch.steps)
            return _carried(_Together.named(step).results, exported(inside, scope.facts), scope)
        case Guarded():
            body = f"{variable(step.name, 'Body')}.results"
            carried = exported(step.body.steps, scope.facts)
            after = _carried(body, carried, _after(step.acquire, scope))
            cleaned = exported(step.cleanup.steps, scope.facts)
            return _carried(variable(step.name, "Cleanup"), cleaned, after)
        case Choose() | Require() | Wait() | Fail():
            return scope
        case _:
            assert_never(step)


def _step(step: Step, scope: Scope, states: States, following: str) -> str:
    match step:
        case Call():
            return calls.call(step, scope, states, following)
        case Read():
            return calls.read(step, scope, states, following)
        case Choose():
            return _choose(step, scope, states, following)
        case Require():
            failed = fail(field_value(step.error), tree(step.cause, scope))
            otherwise = states.last(state(step.name, step.error), failed)
            rule = (condition(step.condition, scope), following)
            return states.last(state(step.name), choice(rule, default=otherwise))
        case ForEach():
            return _for_each(step, scope, states, following)
        case Parallel():
            return _side_by_side(_Together.named(step), step.branches, scope, states, following)
        case Guarded():
            return _guarded(step, scope, states, following)
        case Wait():
            wait: State = {"Type": "Wait", "Seconds": _seconds(step.seconds, scope)}
            return states.add(state(step.name), wait, following)
        case Fail():
            failed = fail(field_value(step.error), tree(step.cause, scope))
            return states.last(state(step.name), failed)
        case _:
            assert_never(step)


def _seconds(seconds: Tree, scope: Scope) -> Json:
    # Step Functions waits whole seconds.
    if isinstance(seconds, Expression):
        return enclosed(f"$ceil({render(seconds, scope)})")
    return ceil(seconds) if isinstance(seconds, int | float) else tree(seconds, scope)


def _choose(step: Choose, scope: Scope, states: States, following: str) -> str:
    then = steps(step.then, scope, states, following)
    otherwise = steps(step.otherwise, scope, states, following)
    rule = (condition(step.condition, scope), then)
    return states.last(state(step.name), choice(rule, default=otherwise))


def _machine(
    name: str, graph: Graph, scope: Scope, given: Given, *first: tuple[str, State]
) -> dict[str, Json]:
    """A graph as a machine of its own, after a first state; it ends with what is given back."""
    states = States()
    inner = seen(graph, scope)
    last = states.add(f"{name}-Given", {"Type": "Pass", "Output": given(inner)}, None)
    start = steps(graph, scope, states, last)
    for label, before in first:
        start = states.add(label, before, start)
    return states.machine(start)


def _attempt(name: str, machine: dict[str, Json]) -> dict[str, Json]:
    """A machine that tries another one, and gives its error back instead of failing."""
    states = States()
    caught = states.add(f"{name}-Caught", {"Type": "Pass"}, None)
    attempt: State = {
        "Type": "Parallel",
        "Branches": [machine],
        "Output": "{% $states.result[0] %}",
        "Catch": [{"ErrorEquals": ["States.ALL"], "Output": dict(_CAUGHT), "Next": caught}],
    }
    return states.machine(states.add(f"{name}-Attempt", attempt, None))


def _results(names: Sequence[str]) -> Given:
    def given(scope: Scope) -> Json:
        return {"results": {variable(step): enclosed(scope.places[step]) for step in names}}

    return given


def _checked(name: str, states: States, following: str) -> str:
    """Fail with the first error that came back, or go on."""
    first = "$states.input[$exists(error)][0]"
    failed = states.last(f"{name}-Failed", failed_as(first))
    rule = (f"$exists({first})", failed)
    return states.last(f"{name}-Joined", choice(rule, default=following))


def _side_by_side(
    names: _Together, graphs: Sequence[Graph], scope: Scope, states: States, following: str
) -> str:
    inside = tuple(step for graph in graphs for step in graph.steps)
    if exported(inside, scope.facts):
        kept: State = {
            "Type": "Pass",
            "Assign": {names.results: "{% $merge($states.input.results) %}"},
        }
        following = states.add(f"{names.state}-Done", kept, following)
    branches: list[Json] = []
    for number, graph in enumerate(graphs, start=1):
        label = f"{names.state}-Branch{number}"
        given = _results(exported(graph.steps, scope.facts))
        branches.append(_attempt(label, _machine(label, graph, scope, given)))
    joined = _checked(names.state, states, following)
    return states.add(names.state, {"Type": "Parallel", "Branches": branches}, joined)


def _for_each(step: ForEach, scope: Scope, states: States, following: str) -> str:
    name = state(step.name)
    kind: Kind = "object" if rows(step.items, scope.facts) else "any"
    inner = replace(scope, item=kind)
    item: State = {"Type": "Pass", "Assign": {"item": "{% $states.input %}"}}

    def collected(inside: Scope) -> Json:
        return {"item": tree(step.collect, inside)}

    body = _machine(name, step.body, inner, collected, (f"{name}-Item", item))
    gathered: State = {
        "Type": "Pass",
        "Assign": {variable(step.name): {"items": "{% [$states.input.item] %}"}},
    }
    loop: State = {
        "Type": "Map",
        "Items": tree(step.items, scope),
        "MaxConcurrency": step.max_concurrency,
        "ItemProcessor": {"ProcessorConfig": {"Mode": "INLINE"}, **_attempt(name, body)},
    }
    done = states.add(f"{name}-Done", gathered, following)
    return states.add(name, loop, _checked(name, states, done))


def _guarded(step: Guarded, scope: Scope, states: States, following: str) -> str:
    acquired = _after(step.acquire, scope)
    body, name = variable(step.name, "Body"), state(step.name)
    failed = states.last(f"{name}-Failed", failed_as(f"${body}"))
    unclean = states.last(f"{name}-Unclean", failed_as("$states.input"))
    released = choice(
        (f"$exists(${body}.error)", failed),
        ("$exists($states.input.error)", unclean),
        default=following,
    )
    after = states.last(f"{name}-Released", released)
    label = f"{name}-Cleanup"
    cleaned = exported(step.cleanup.steps, scope.facts)
    release: State = {
        "Type": "Parallel",
        "Branches": [_machine(label, step.cleanup, acquired, _results(cleaned))],
        "Output": "{% $states.result[0] %}",
        "Catch": [{"ErrorEquals": ["States.ALL"], "Output": dict(_CAUGHT), "Next": after}],
    }
    if cleaned:
        release["Assign"] = {variable(step.name, "Cleanup"): "{% $states.result[0].results %}"}
    cleanup = states.add(label, release, after)
    label = f"{name}-Body"
    given = _results(exported(step.body.steps, scope.facts))
    work: State = {
        "Type": "Parallel",
        "Branches": [_machine(label, step.body, acquired, given)],
        "Catch": [
            {"ErrorEquals": ["States.ALL"], "Assign": {body: dict(_CAUGHT)}, "Next": cleanup}
        ],
        "Assign": {body: "{% $states.result[0] %}"},
    }
    return calls.call(step.acquire, scope, states, states.add(label, work, cleanup))
