"""Values that outlive a machine that fails: what stages after a run's end read of others.

Variables end with their machine. One that holds such values therefore catches its own errors and
gives them back as data beside the values, ``{"Error": …, "Cause": …, "results": {…}}``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from orchestration.backends.jsonata import enclosed, quote, render
from orchestration.backends.stepfunctions.names import Facts, Scope, state, variable
from orchestration.backends.stepfunctions.nesting import ATTEMPT, ERROR, Together, carried
from orchestration.backends.stepfunctions.states import State, States
from orchestration.backends.stepfunctions.wording import own_name
from orchestration.execution import wording
from orchestration.expressions import Json
from orchestration.graph import (
    Choose,
    Concluded,
    Graph,
    Guarded,
    Kept,
    Parallel,
    Step,
    lasting,
    upstream,
)
from orchestration.graph.composition import compose, leaves, parts_in_series

_ENDED: Final = "Ended"
_CATCHING: Final = ("Task", "Parallel", "Map")


def held(graph: Graph, known: Facts) -> dict[str, str]:
    """Return the JSONata, in the machine of a graph, of the values in it that outlive it."""
    if not known.marks:
        return {}
    return dict(_held(graph, known))


def _held(graph: Graph, known: Facts) -> Iterator[tuple[str, str]]:
    steps = {step.name: step for step in graph.steps}
    series = parts_in_series(compose(list(steps), upstream(graph))) if steps else ()
    for part in series:
        if isinstance(part, str):
            yield from _of_step(steps[part], known)
            continue
        inside = Graph(tuple(steps[name] for name in leaves(part)))
        yield from _through(Together.of(part).results, inside, known)


def _of_step(step: Step, known: Facts) -> Iterator[tuple[str, str]]:
    yield from _own(step.name, known)
    match step:
        case Choose():
            yield from _held(step.then, known)
            yield from _held(step.otherwise, known)
        case Guarded():
            yield from _own(step.acquire.name, known)
            yield from _through(f"{variable(step.name, 'Body')}.results", step.body, known)
        case Parallel():
            inside = Graph(tuple(inner for branch in step.branches for inner in branch.steps))
            yield from _through(Together.named(step).results, inside, known)
        case _:
            pass


def _own(step: str, known: Facts) -> Iterator[tuple[str, str]]:
    names = [variable(step)] if step in known.kept else []
    names += [variable(step, _ENDED)] if step in known.marks else []
    yield from ((name, f"${name}") for name in names)


def _through(holder: str, graph: Graph, known: Facts) -> Iterator[tuple[str, str]]:
    for step in lasting(graph):
        yield from ((name, f"${holder}.{name}") for name, _ in _own(step.name, known))


def begun(places: Mapping[str, str]) -> dict[str, Json]:
    """Return the assignments before a machine's first state, so that all variables can be read."""
    return {text.removeprefix("$").partition(".")[0]: None for text in places.values()}


def written(places: Mapping[str, str]) -> str:
    """Return results as one object, without those that are not there."""
    return enclosed(f"{{{', '.join(f'{quote(name)}: {text}' for name, text in places.items())}}}")


def marked(step: str, states: States, following: str) -> str:
    """Write the state that a step comes to where it has ended well."""
    mark: State = {"Type": "Pass", "Assign": {variable(step, _ENDED): True}}
    return states.add(state(step, _ENDED), mark, following)


def salvage(states: States, places: Mapping[str, str]) -> None:
    """Let a machine give its error back beside the values, instead of failing."""
    end: State = {
        "Error": "{% $states.input.Error %}",
        "Cause": "{% $states.input.Cause %}",
        "results": written(places),
    }
    name = f"{states.label}-Salvage"
    for other, content in list(states.written.items()):
        if content["Type"] == "Fail":
            error: State = {"Error": content["Error"], "Cause": content["Cause"]}
            states.written[other] = {"Type": "Pass", "Output": error, "Next": name}
        elif content["Type"] in _CATCHING:
            catchers = cast("list[State]", content.get("Catch", []))
            if not any("States.ALL" in cast("list[str]", c["ErrorEquals"]) for c in catchers):
                last: State = {"ErrorEquals": ["States.ALL"], "Output": ERROR, "Next": name}
                content["Catch"] = [*catchers, last]
    states.add(name, {"Type": "Pass", "Output": end}, None)


def ending(step: Concluded, body: str, scope: Scope, states: States, following: str) -> str:
    """Write the state that assigns how a body ended, and the values that outlive it.

    ``body`` is the variable with its results or its error.
    """
    error, cause = own_name(f"${body}.Error"), f"'' & ${body}.Cause"
    well, badly = wording.ending(None), wording.ending((error, cause))
    badly["state"] = quote(badly["state"])
    outcome: dict[str, Json] = {
        name: enclosed(f"$exists(${body}.Error) ? {badly[name]} : {quote(well[name])}")
        for name in well
    }
    outcome |= ATTEMPT
    outcome |= {name: _kept(kept, f"{body}.results", scope) for name, kept in step.kept.items()}
    assigned: State = {"Type": "Pass", "Assign": {variable(step.name): outcome}}
    return states.add(state(step.name, "Outcome"), assigned, following)


def _kept(kept: Kept, holder: str, scope: Scope) -> str:
    inner = carried(holder, sorted(scope.facts.kept), scope)
    there = " and ".join(f"${holder}.{variable(step, _ENDED)} = true" for step in kept.steps)
    return enclosed(f"{there} ? {render(kept.value, inner)} : null")
