"""Walks through a graph: the steps inside a step, the values that it reads, and their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, assert_never

from orchestration.errors import GraphError, Problem
from orchestration.expressions import Result, Tree, walk
from orchestration.graph.calls import Alternative, Operation
from orchestration.graph.ordering import circle, layered
from orchestration.graph.steps import (
    Call,
    Choose,
    Concluded,
    Fail,
    ForEach,
    Graph,
    Guarded,
    Parallel,
    Read,
    Require,
    Step,
    Wait,
)
from orchestration.graph.timing import Clock


def bodies(step: Step) -> tuple[Graph, ...]:
    """The graphs inside a step."""
    match step:
        case Choose():
            return (step.then, step.otherwise)
        case ForEach():
            return (step.body,)
        case Parallel():
            return step.branches
        case Guarded():
            return (Graph((step.acquire,)), step.body, step.cleanup)
        case Concluded():
            return (step.body, step.conclusion)
        case Call() | Read() | Require() | Clock() | Wait() | Fail():
            return ()


def candidates(call: Call) -> tuple[Call, ...]:
    """Return the requests of a call in order: its own, then each alternative as a call."""
    until, fallback = call.until, call.fallback
    if until is None or fallback is None:
        return (call,)
    return (
        replace(call, fallback=replace(fallback, alternatives=())),
        *(
            replace(
                call,
                operation=other.operation,
                until=replace(until, poll=other.poll, stop=other.stop),
                fallback=replace(fallback, label=other.label, alternatives=()),
            )
            for other in fallback.alternatives
        ),
    )


def operations(call: Call) -> Iterator[Operation]:
    """Every operation that a call may send: its own, its polls and stops, its alternatives'."""
    for candidate in candidates(call):
        yield candidate.operation
        if candidate.until is not None:
            yield candidate.until.poll
            if candidate.until.stop is not None:
                yield candidate.until.stop
            if candidate.until.person is not None:
                yield candidate.until.person.token


def trees(step: Step) -> Iterator[Tree]:
    """Every tree of a step's own (not those inside its bodies)."""
    match step:
        case Call():
            yield from _trees_of_call(step)
        case Read():
            yield step.uri
        case Choose():
            yield step.condition
            yield step.collect
            yield step.absent
        case Require():
            yield step.condition
            yield step.cause
        case ForEach():
            yield step.items
            yield step.collect
        case Wait():
            yield step.seconds
        case Fail():
            yield step.cause
        case Concluded():
            yield from (kept.value for kept in step.kept.values())
        case Parallel() | Guarded() | Clock():
            pass


def _trees_of_call(call: Call) -> Iterator[Tree]:
    for operation in operations(call):
        yield operation.request
        if operation.assumes is not None:
            yield operation.assumes
    yield from (c.fallback.label for c in candidates(call) if c.fallback is not None)
    if call.failure is not None:
        yield call.failure.remedy
    if call.until is not None and call.until.person is not None:
        yield call.until.person.question
    if call.within is not None:
        yield call.within.since


def stage_of(step: str) -> str:
    """The stage that a step belongs to, by the step's name."""
    return step.partition(".")[0]


def all_steps(graph: Graph) -> Iterator[Step]:
    """Every step of a graph, those inside others too, outermost first."""
    for step in graph.steps:
        yield step
        for body in bodies(step):
            yield from all_steps(body)


def always(graph: Graph) -> Iterator[Step]:
    """Every step of a graph that a run performs unless it fails before."""
    for step in graph.steps:
        yield step
        if not isinstance(step, Choose | ForEach):
            for body in bodies(step):
                yield from always(body)


def job_name_fields(graph: Graph) -> dict[str, str]:
    """The operations that start jobs under names of the run's own: the field with the name.

    Whatever stage they are from, so that no list elsewhere repeats the kinds of jobs.
    """
    return {
        step.operation.name: step.adopt.name_field
        for step in all_steps(graph)
        if isinstance(step, Call) and step.adopt is not None and step.adopt.name_field is not None
    }


def rewrite(  # noqa: C901 - one arm for each kind of step
    step: Step, tree: Callable[[Any], Any]
) -> Step:
    """Replace every tree of a step, and of the steps inside it."""

    def graph(old: Graph) -> Graph:
        return Graph(tuple(rewrite(inner, tree) for inner in old.steps))

    match step:
        case Call():
            return _rewrite_call(step, tree)
        case Read():
            return replace(step, uri=tree(step.uri))
        case Choose():
            return replace(
                step,
                condition=tree(step.condition),
                then=graph(step.then),
                otherwise=graph(step.otherwise),
                collect=tree(step.collect),
                absent=tree(step.absent),
            )
        case Require():
            return replace(step, condition=tree(step.condition), cause=tree(step.cause))
        case ForEach():
            return replace(
                step, items=tree(step.items), body=graph(step.body), collect=tree(step.collect)
            )
        case Parallel():
            return replace(step, branches=tuple(graph(branch) for branch in step.branches))
        case Guarded():
            return replace(
                step,
                acquire=_rewrite_call(step.acquire, tree),
                body=graph(step.body),
                cleanup=graph(step.cleanup),
            )
        case Concluded():
            kept = {name: replace(k, value=tree(k.value)) for name, k in step.kept.items()}
            body, conclusion = graph(step.body), graph(step.conclusion)
            return replace(step, body=body, conclusion=conclusion, kept=kept)
        case Wait():
            return replace(step, seconds=tree(step.seconds))
        case Fail():
            return replace(step, cause=tree(step.cause))
        case Clock():
            return step
        case _:
            assert_never(step)


def _rewrite_call(call: Call, tree: Callable[[Any], Any]) -> Call:
    def operation(old: Operation) -> Operation:
        also = {name: tree(getattr(old, name)) for name in ("decrypts", "reads", "assumes")}
        return replace(old, request=tree(old.request), **also)

    def stop(old: Operation | None) -> Operation | None:
        return None if old is None else operation(old)

    def alternative(old: Alternative) -> Alternative:
        return Alternative(
            label=tree(old.label),
            operation=operation(old.operation),
            poll=operation(old.poll),
            stop=stop(old.stop),
        )

    until, fallback = call.until, call.fallback
    if until is not None:
        person = until.person
        if person is not None:
            question, token = tree(person.question), operation(person.token)
            person = replace(person, question=question, token=token)
        until = replace(until, poll=operation(until.poll), stop=stop(until.stop), person=person)
    if fallback is not None:
        others = tuple(alternative(other) for other in fallback.alternatives)
        fallback = replace(fallback, label=tree(fallback.label), alternatives=others)
    failure, pages, within = call.failure, call.pages, call.within
    if within is not None:
        within = replace(within, since=tree(within.since))
    if failure is not None:
        failure = replace(failure, remedy=tree(failure.remedy))
    if pages is not None:
        folds = {name: replace(f, then=tree(f.then)) for name, f in pages.folds.items()}
        pages = replace(pages, folds=folds)
    return replace(
        call,
        operation=operation(call.operation),
        pages=pages,
        until=until,
        fallback=fallback,
        failure=failure,
        within=within,
    )


def reads(step: Step) -> frozenset[str]:
    """The names of all steps whose results a step reads, itself or inside its bodies."""
    own = {node.step for tree in trees(step) for node in walk(tree) if isinstance(node, Result)}
    inner = {name for body in bodies(step) for s in body.steps for name in reads(s)}
    after = {name for body in bodies(step) for s in all_steps(body) for name in s.after}
    return frozenset(own | inner | after | set(step.after))


def visible(step: Step) -> frozenset[str]:
    """The names under which a step's results are read from outside of it."""
    names = {step.name}
    if isinstance(step, Parallel | Guarded | Concluded):
        names |= {n for body in bodies(step) for inner in body.steps for n in visible(inner)}
    return frozenset(names)


def lasting(graph: Graph) -> Iterator[Step]:
    """Every step of a graph whose results can outlive its failure.

    Not those in loops, nor those of clean-ups.
    """
    for step in graph.steps:
        yield step
        inner = () if isinstance(step, ForEach) else bodies(step)
        for body in inner[:2] if isinstance(step, Guarded) else inner:
            yield from lasting(body)


def upstream(graph: Graph) -> dict[str, frozenset[str]]:
    """For every step of a graph (not inside others), the steps of that graph it waits for."""
    owner = {name: step.name for step in graph.steps for name in visible(step)}
    return {
        step.name: frozenset(
            owner[name] for name in reads(step) if name in owner and owner[name] != step.name
        )
        for step in graph.steps
    }


def ordered(graph: Graph, before: Mapping[str, frozenset[str]] | None = None) -> tuple[Step, ...]:
    """The steps so that each comes after what it waits for, ties by their order in the graph.

    ``before`` is :func:`upstream` of the graph, where it is known already. Raises
    :class:`GraphError` naming the members of a cycle.
    """
    before = upstream(graph) if before is None else before
    order = layered(before)
    if len(order) < len(before):
        members = " -> ".join(circle(before))
        raise GraphError([Problem("", f"these wait for each other: {members}")])
    steps = {step.name: step for step in graph.steps}
    return tuple(steps[name] for name in order)
