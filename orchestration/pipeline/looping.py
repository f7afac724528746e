"""Stages with ``for_each``: their steps as the body of a loop, their outputs as lists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from orchestration.errors import Problem
from orchestration.expressions import (
    Compare,
    Each,
    Function,
    Item,
    Parameter,
    Result,
    Tree,
    apply,
    join,
    substitute,
    walk,
)
from orchestration.graph import (
    Call,
    ForEach,
    Graph,
    Guarded,
    Permission,
    Require,
    Step,
    all_steps,
    rewrite,
)
from orchestration.pipeline.elements import checking as elements
from orchestration.pipeline.elements import objects
from orchestration.refs import Expression, Ref
from orchestration.stages import Context, Fragment, Stage
from orchestration.stages.stage import ForEachItem

if TYPE_CHECKING:
    from orchestration.pipeline.draft import Draft, Written

_REQUESTS: Final = ("request", "extra_request", "poll")
"""The fields of stages that take lists: requests as AWS has them."""


def inside(context: Context, loop: ForEachItem) -> Context:
    """Return the context of one element."""
    item = objects.named(loop)
    element = item if context.element is None else join(context.element, "/", item)
    return replace(context, element=element)


def looped(
    stage: Stage, fragment: Fragment, read: Collection[str]
) -> tuple[Fragment, list[Problem]]:
    """Return a stage's steps as a loop that collects the outputs that are read."""
    loop = stage.for_each
    if loop is None:
        return fragment, []
    wrong = [Problem("for_each", text, stage=stage.name) for text in impossible(fragment, loop)]
    body = Graph(tuple(rewrite(step, _of_item) for step in fragment.steps))
    collect = {output: _of_item(fragment.outputs[output]) for output in read}
    each = run_through(stage.name, loop, body, collect)
    # What nobody reads is not collected, and has to be a value all the same.
    outputs: dict[str, Tree] = {**dict.fromkeys(fragment.outputs), **each.outputs}
    permissions = tuple(_any_item(permission) for permission in fragment.permissions)
    return replace(each, outputs=outputs, permissions=permissions), wrong


def run_through(
    stage: str, loop: ForEachItem, body: Graph, collect: Mapping[str, Tree]
) -> Fragment:
    """Return a loop over a list, after the checks of it, with lists of what is collected."""
    literal = not isinstance(loop.items, Expression)
    values: Tree = list(loop.items) if literal else loop.items
    checks = () if literal else _checks(stage, values, loop)
    each = ForEach(
        name=f"{stage}.each",
        items=values,
        body=body,
        collect=collect,
        max_concurrency=loop.max_concurrency,
        at_most=loop.at_most,
        after=tuple(check.name for check in checks[-1:]),
    )
    items = Result(each.name, "items")
    lists: dict[str, Tree] = {name: apply(Function.COLUMN, items, name) for name in collect}
    return Fragment(steps=(*checks, each), outputs=lists)


def _checks(stage: str, items: Tree, loop: ForEachItem) -> tuple[Require, ...]:
    """Return what a list that is known during a run must be, each after the one before."""
    few = _few(stage, items, loop.at_most)
    return (few, *objects.required(stage, items, loop, after=few.name))


def _few(stage: str, items: Tree, most: int) -> Require:
    count = apply(Function.COUNT, items)
    cause = join(f"stage {stage}: expected at most {most} elements of for_each, got ", count)
    return Require(
        name=f"{stage}.elements",
        condition=Compare("le", count, most),
        error="TooManyElements",
        cause=cause,
    )


def _of_item(tree: Any) -> Any:
    return substitute(tree, objects.value)


def _any_item(permission: Permission) -> Permission:
    return replace(permission, resources=tuple(map(_of_item, permission.resources)))


def impossible(fragment: Fragment, loop: ForEachItem) -> Iterator[str]:
    """Yield why a stage can't run once for each element."""
    steps = list(all_steps(Graph(fragment.steps)))
    if fragment.guard is not None:
        yield "a stage that creates a file system for others can't have it; give it to the readers"
    elif any(isinstance(step, Guarded) for step in fragment.steps):
        yield "the stage creates what it deletes at its end; write one stage for each element"
    elif fragment.look is not None:
        yield "a stage with unless_unchanged can't have it"
    elif not loop.together and any(isinstance(step, ForEach) for step in steps):
        yield "the stage goes through a list of its own; write one stage for each element"
    elif any(_asks(step) for step in steps):
        yield "a person answers once for the whole stage; remove it"
    elif not loop.together and fragment.gate is not None and fragment.gate.on_miss == "stop":
        yield "on_miss: stop can't be said of each element; write on_miss: fail"
    for step in steps:
        field = step.adopt.name_field if isinstance(step, Call) and step.adopt else None
        if field is not None and isinstance(step, Call):
            named = walk(step.operation.request.get(field))
            if not any(isinstance(node, Item | Each | Result) for node in named):
                yield f"all elements would have one {field}; put {{each: item}} into it"


def _asks(step: Step) -> bool:
    return isinstance(step, Call) and step.until is not None and step.until.person is not None


def problems(draft: Draft) -> Iterator[Problem]:
    """Yield what is wrong with loops, and with lists where one value is expected."""
    for field, value in (("workspace", draft.workspace), ("role", draft.role)):
        if any(_is_list(node, set(), draft) for node in walk(value)):
            yield Problem(field, "is a list, and one value is expected")
    loops = [w for w in draft.stages if w.stage is not None and w.stage.for_each is not None]
    for written in draft.stages:
        own = group(written)
        # Stages that run together read each other's outputs element by element.
        lists = {each.name for each in loops if own is None or group(each) != own}
        for field, message in _of_stage(written, lists, draft):
            yield Problem(field, message, stage=written.name)


def _of_stage(written: Written, lists: set[str], draft: Draft) -> Iterator[tuple[str, str]]:
    if written.stage is None:
        return
    loop = written.stage.for_each
    for path, node in written.references:
        is_list = _is_list(node, lists, draft)
        if path == "for_each.items":
            if isinstance(node, Ref | Parameter) and is_list is False:
                name = f"{node.stage}.{node.output}" if isinstance(node, Ref) else node.name
                yield path, f"{name} is not a list; give a parameter with type: array, or a list"
        elif is_list and path.partition(".")[0] not in _REQUESTS and path != "when":
            yield path, "is a list, and one value is expected; give the stage for_each over it"
    yield from elements.problems(written, lists, draft)
    if loop is not None and not isinstance(loop.items, Expression):
        yield from _elements(loop.items, loop.at_most)


def _elements(items: Iterable[object], most: int) -> Iterator[tuple[str, str]]:
    listed = list(items)
    twice = sorted({repr(item) for item in listed if listed.count(item) > 1})
    if twice:
        yield "for_each.items", f"{', '.join(twice)} stands there twice"
    if len(listed) > most:
        yield "for_each.items", f"has {len(listed)} elements; at_most is {most}"


def _is_list(node: object, lists: set[str], draft: Draft) -> bool | None:
    """Return whether a value is a list; ``None``: another kind of expression, or not known."""
    match node:
        case Parameter(name):
            declared = draft.parameters.get(name)
            return None if declared is None else declared.type == "array"
        case Ref(stage, output):
            written = next((w for w in draft.stages if w.name == stage), None)
            if written is None or written.stage is None:
                return None
            return True if stage in lists else _declared(written.stage, output)
        case _:
            return None


def _declared(stage: Stage, output: str) -> bool | None:
    kind = type(stage).outputs.kind_of(stage, output)
    return None if kind is None else kind == "list"


def group(written: Written) -> str | None:
    """Return the name that a stage shares with those that it runs together with."""
    loop = None if written.stage is None else written.stage.for_each
    return None if loop is None else loop.together


def reading(stage: Stage) -> frozenset[str]:
    """Return the stages whose outputs a stage reads."""
    return frozenset(node.stage for _, node in stage.references() if isinstance(node, Ref))


def of_element(tree: Tree) -> bool:
    """Return whether a value depends on the element that a loop is at."""
    return any(isinstance(node, Each) for node in walk(tree))


def outputs_read(stages: Iterable[Stage]) -> Mapping[str, frozenset[str]]:
    """Return the outputs of each stage that others read, or that a run shows."""
    read: dict[str, set[str]] = {}
    for stage in stages:
        read.setdefault(stage.name, set()).update(type(stage).outputs.shown(stage))
        for _, node in stage.references():
            if isinstance(node, Ref):
                read.setdefault(node.stage, set()).add(node.output)
    return {name: frozenset(outputs) for name, outputs in read.items()}
