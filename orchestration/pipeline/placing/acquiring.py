"""Waits for what a guard acquires, inside of the guard: a wait that fails releases it as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from orchestration.expressions import Result, substitute, walk
from orchestration.graph import (
    Call,
    Choose,
    ForEach,
    Graph,
    Guarded,
    Parallel,
    Step,
    all_steps,
    rewrite,
    trees,
    upstream,
)
from orchestration.refs import Expression
from orchestration.stages import Fragment


def waiting_inside(fragment: Fragment) -> Fragment:
    """Return a fragment whose guards wait in their bodies for what they acquire.

    A call that starts jobs again, falls back or may fail is left as it is, and so is one whose
    clean-up reads what only the wait tells; the rules refuse them.
    """
    inside = [step for step in all_steps(Graph(fragment.steps)) if isinstance(step, Guarded)]
    acquired = [(step.acquire, step.cleanup) for step in inside]
    if fragment.guard is not None:
        acquired.append((fragment.guard.acquire, fragment.guard.cleanup))
    moved = {call.name: call for call, cleanup in acquired if _can_be_moved(call, cleanup)}
    if not moved:
        return fragment
    steps = tuple(_moved(step, moved) for step in fragment.steps)
    guard = fragment.guard
    if guard is not None and guard.acquire.name in moved:
        steps = _awaited(steps, guard.acquire)
        guard = replace(guard, acquire=_at_once(guard.acquire))
    tree = _renamed(moved)
    if guard is not None:
        saving = Graph(tuple(rewrite(step, tree) for step in guard.saving.steps))
        guard = replace(guard, saving=saving)
    return replace(
        fragment,
        steps=tuple(rewrite(step, tree) for step in steps),
        outputs=tree(fragment.outputs),
        guard=guard,
    )


def _can_be_moved(call: Call, cleanup: Graph) -> bool:
    if call.until is None or call.may_fail or call.fallback is not None or call.failure is not None:
        return False
    if call.adopt is not None and call.adopt.name_field is not None:
        return False
    late = {Result(call.name, output) for output in call.until.outputs}
    read = (tree for step in all_steps(cleanup) for tree in trees(step))
    return late.isdisjoint(node for tree in read for node in walk(tree) if isinstance(node, Result))


def _at_once(call: Call) -> Call:
    return replace(call, until=None, within=None)


def _name(acquire: str) -> str:
    return f"{acquire}_ready"


def _awaited(steps: tuple[Step, ...], acquire: Call) -> tuple[Step, ...]:
    """Return steps after a wait for what a call has acquired."""
    until, name = acquire.until, _name(acquire.name)
    if until is None:
        return steps
    ready = Call(name=name, operation=until.poll, until=replace(until, stop=None))
    before = upstream(Graph(steps))
    later = (s if before[s.name] else replace(s, after=(*s.after, name)) for s in steps)
    return (ready, *later)


def _moved(step: Step, moved: dict[str, Call]) -> Step:
    """Return a step in which every guard waits in its body for what it acquires."""

    def graph(old: Graph) -> Graph:
        return Graph(tuple(_moved(inner, moved) for inner in old.steps))

    match step:
        case Guarded():
            body = graph(step.body)
            if step.acquire.name in moved:
                body = Graph(_awaited(body.steps, step.acquire))
                step = replace(step, acquire=_at_once(step.acquire))
            return replace(step, body=body)
        case Choose():
            return replace(step, then=graph(step.then), otherwise=graph(step.otherwise))
        case Parallel():
            return replace(step, branches=tuple(graph(branch) for branch in step.branches))
        case ForEach():
            return replace(step, body=graph(step.body))
        case _:
            return step


def _renamed(moved: dict[str, Call]) -> Callable[[Any], Any]:
    """Return the change of trees that read what the last poll of a moved wait gives."""
    outputs = {
        (name, output)
        for name, call in moved.items()
        if call.until is not None
        for output in call.until.outputs
    }

    def node(old: Expression[object]) -> Expression[object]:
        if isinstance(old, Result) and (old.step, old.output) in outputs:
            return Result(_name(old.step), old.output)
        return old

    return lambda tree: substitute(tree, node)
