"""Elements that are objects: their names, their fields, and what a list must hold."""

from __future__ import annotations

from orchestration.expressions import (
    Compare,
    Each,
    Field,
    Function,
    Item,
    Tree,
    apply,
    join,
)
from orchestration.graph import Require
from orchestration.refs import WHOLE, Expression
from orchestration.stages.stage import ForEachItem


def named(loop: ForEachItem) -> Expression[object]:
    """Return what names the element that a loop is at, as text."""
    return apply(Function.TEXT, Item() if loop.key is None else Field(Item(), loop.key))


def value(node: Expression[object]) -> Tree:
    """Return what a reference to an element, or to a field of it, stands for in a loop's body."""
    if not isinstance(node, Each):
        return node
    return Item() if node.field == WHOLE else Field(Item(), node.field)


def required(stage: str, items: Tree, loop: ForEachItem, *, after: str) -> tuple[Require, ...]:
    """Return the step that fails a run whose list holds anything but objects as expected."""
    if loop.key is None:
        return ()
    pairs = [part for pair in loop.fields.items() for part in pair]
    wrong = apply(Function.MISFITS, items, loop.key, *pairs)
    step = Require(
        name=f"{stage}.fields",
        condition=Compare("eq", wrong, ""),
        error="WrongElements",
        cause=join(f"stage {stage}: ", wrong, f"; {expected(loop)}"),
        after=(after,),
    )
    return (step,)


def expected(loop: ForEachItem) -> str:
    """Return what each element of a list must be."""
    fields = ", ".join(f"{name}: {kind}" for name, kind in loop.fields.items())
    return f"for_each expects objects with {fields}, and another {loop.key} in each"
