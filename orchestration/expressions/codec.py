"""Expressions as JSON and back, for Airflow operators' arguments.

A node becomes an object with one key, its kind after a dollar sign, that holds its only field or a
list of them: ``{"$Parameter": "role"}``, ``{"$Result": ["staging.list", "objects"]}``. A user's own
mapping that looks like one is wrapped as ``{"$literal": …}``: every tree comes back as it went in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Final, cast

from orchestration.errors import ExpressionError
from orchestration.expressions import nodes
from orchestration.expressions.nodes import SCALARS, Apply, Function, Json, Tree
from orchestration.refs import Expression, Join, Parameter, Run, RunAttempt

_MARK: Final = "$"
_LITERAL: Final = "$literal"
_KINDS: dict[str, type[Expression[object]]] = {
    kind.__name__: kind
    for kind in (
        nodes.Result,
        Parameter,
        Run,
        RunAttempt,
        nodes.Item,
        Join,
        nodes.Field,
        nodes.Compare,
        nodes.All,
        nodes.Any,
        nodes.Not,
        nodes.Best,
        nodes.Apply,
    )
}
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(field.name for field in fields(kind))  # type: ignore[arg-type]  # nodes are dataclasses, their base is not
    for name, kind in _KINDS.items()
}


def encode(tree: Tree) -> Json:
    """Return a tree as JSON."""
    if isinstance(tree, SCALARS):
        return tree
    if isinstance(tree, Expression):
        kind = type(tree).__name__
        if kind not in _KINDS:
            raise ExpressionError(f"{tree!r} can't be encoded; resolve it first")
        if isinstance(tree, Apply):
            return node(kind, [tree.function, *map(encode, tree.arguments)])
        values = [encode(getattr(tree, name)) for name in _FIELDS[kind]]
        return node(kind, values[0] if len(values) == 1 else values)
    if isinstance(tree, Mapping):
        return wrapped({key: encode(value) for key, value in tree.items()})
    if isinstance(tree, Sequence):
        return [encode(value) for value in tree]
    return tree


def node(kind: str, content: Json) -> Json:
    """Return an encoded node."""
    return {_MARK + kind: content}


def wrapped(plain: Mapping[str, Json]) -> Json:
    """Return an encoded mapping, marked as a literal where it would be taken for a node."""
    return plain if opened(plain) is None else {_LITERAL: plain}


def opened(document: Mapping[str, Json]) -> tuple[str, Json] | None:
    """Return the kind and the content of an encoded node; ``None`` for any other object.

    The kind of a mapping that was wrapped is ``literal``.
    """
    if len(document) == 1:
        [(key, content)] = document.items()
        # A mapping that is no JSON passes here too, before it is refused.
        name = str(key)
        if name.startswith(_MARK):
            return name.removeprefix(_MARK), content
    return None


def decode(value: Json) -> Tree:
    """Return the tree that :func:`encode` was given."""
    if isinstance(value, Mapping):
        node = opened(value)
        if node is not None:
            return decode_with(*node, decode)
        return {key: decode(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [decode(item) for item in value]
    return value


def decode_with(kind: str, content: Json, inner: Callable[[Json], Tree]) -> Tree:
    """Return the expression that a node encodes; ``inner`` decodes what is inside."""
    if kind == "literal":
        return {key: inner(item) for key, item in cast("Mapping[str, Json]", content).items()}
    if kind == Apply.__name__:
        function, *arguments = cast("Sequence[Json]", content)
        return Apply(Function(str(function)), tuple(inner(argument) for argument in arguments))
    parts = [content] if len(_FIELDS[kind]) == 1 else cast("Sequence[Json]", content)
    values = [inner(part) for part in parts]
    return _KINDS[kind](*(tuple(v) if isinstance(v, list) else v for v in values))


def is_kind(name: object) -> bool:
    """Return whether a name is that of an expression."""
    return name in _KINDS
