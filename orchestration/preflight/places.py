"""Places in the user's description: the field that a value of a request comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeVar

from orchestration.expressions import Parameter, Tree, walk
from orchestration.graph import stage_of
from orchestration.pipeline.afterwards.sections import SECTIONS
from orchestration.stages.values import Model

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

Value = TypeVar("Value")
Written = TypeVar("Written")


def place(pipeline: Pipeline, step: str, tree: Tree = None, turn: int = 0) -> str:
    """Return the path of the field that a value stands in: of the step's stage, else a parameter.

    ``turn`` is the number of the alternative that asks with it: it prefers the field of that
    fallback. The path of the stage where nothing else is found.
    """
    own, stage = _stage(pipeline, step)
    if stage is None:
        return own
    if tree is not None:
        fallback = f".fallbacks.{turn - 1}." if turn else ""
        found = [path for path, value in _fields(stage, own) if _same(value, tree)]
        fitting = [path for path in found if fallback in path] or found
        if fitting:
            return fitting[0]
        for node in walk(tree):
            if isinstance(node, Parameter):
                return f"parameters.{node.name}"
    return own


def beside(
    values: Iterable[Value], trees: Iterable[Written]
) -> Iterator[tuple[Value, Written | None]]:
    """Pair values with what was written for them; with nothing where a list was a parameter."""
    known, written = list(values), list(trees)
    yield from zip(known, written if len(written) == len(known) else repeat(None), strict=False)


def _stage(pipeline: Pipeline, step: str) -> tuple[str, Any]:
    name = stage_of(step)
    for section in SECTIONS:
        for stage in getattr(pipeline, section):
            if stage.name == name:
                return f"{section}.{name}", stage
    return name, None


def _fields(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every field below a value with its path."""
    if isinstance(value, Model):
        inside: Any = ((name, getattr(value, name)) for name in type(value).model_fields)
    elif isinstance(value, Mapping):
        inside = value.items()
    elif isinstance(value, list | tuple):
        inside = enumerate(value)
    else:
        return
    for name, member in inside:
        below = f"{path}.{name}"
        yield below, member
        yield from _fields(member, below)


def _same(value: Any, tree: Tree) -> bool:
    return type(value) is type(tree) and bool(value == tree)
