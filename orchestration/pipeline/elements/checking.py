"""Problems of elements before anything runs: references to them, and lists known by then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from orchestration.errors import near
from orchestration.expressions import Each, Json, Parameter, misfits
from orchestration.pipeline.elements.objects import expected
from orchestration.refs import WHOLE, Expression, Ref
from orchestration.stages.stage import ForEachItem

if TYPE_CHECKING:
    from orchestration.pipeline.draft import Draft, Written

_BEFORE = ("for_each.items",)
_NO_ELEMENT = "there is no element here; {each: item} is for the fields of a stage with for_each"


def problems(written: Written, loops: set[str], draft: Draft) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a stage's elements; ``loops`` are the stages that have some."""
    loop = None if written.stage is None else written.stage.for_each
    for path, node in written.references:
        if isinstance(node, Each):
            if loop is None or path in (_BEFORE if loop.together else ("when", *_BEFORE)):
                yield path, _NO_ELEMENT
            elif text := _misnamed(node.field, loop):
                yield path, text
    if loop is None:
        return
    if isinstance(loop.items, Ref) and loop.fields and loop.items.stage in loops:
        message = f"the elements of an output of {loop.items.stage} are no objects; remove it"
        yield "for_each.fields", message
    for name, items in _known(loop, draft):
        if text := _wrong(items, loop):
            yield "for_each.items", f"{name}{text}"


def _misnamed(field: str, loop: ForEachItem) -> str:
    """Return why the elements of a loop have no field of a name."""
    if field in loop.fields or (field == WHOLE and not loop.fields):
        return ""
    if loop.fields:
        return f"the elements have no field {field!r}{near(field, loop.fields)}"
    return (
        f"{{each: {field}}} is a field of elements that are objects; name it in for_each.fields, "
        f"or write {{each: {WHOLE}}} for the element itself"
    )


def _known(loop: ForEachItem, draft: Draft) -> Iterator[tuple[str, Sequence[Json]]]:
    """Yield the lists that a loop may go over as far as they are known, with words before them."""
    if not isinstance(loop.items, Expression):
        yield "", loop.items
    elif isinstance(loop.items, Parameter):
        name = loop.items.name
        declared = draft.parameters.get(name)
        if declared is not None and isinstance(declared.default, list):
            yield f"by the default of {name}, ", declared.default
        for field, starts in (("schedule", draft.schedule), ("trigger", draft.trigger)):
            chosen = None if starts is None else starts.parameters.get(name)
            if isinstance(chosen, list):
                yield f"by {field}.parameters.{name}, ", chosen


def _wrong(items: Sequence[Json], loop: ForEachItem) -> str:
    if loop.key is not None:
        text = misfits(items, loop.key, loop.fields)
        return f"{text}; {expected(loop)}" if text else ""
    objects = [number for number, item in enumerate(items, start=1) if isinstance(item, Mapping)]
    if not objects:
        return ""
    return (
        f"element {objects[0]} is an object; say which fields each has: "
        "for_each: {fields: {<name>: string}, key: <name>}"
    )
