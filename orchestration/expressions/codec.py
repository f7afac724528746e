"""Expressions as JSON and back, for Airflow operators' arguments.

A node becomes ``{"$expression": [kind, field, …]}``. A user's own mapping that happens to have that
key is wrapped, so every tree comes back as it went in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import cast

from orchestration.errors import ExpressionError
from orchestration.expressions import nodes
from orchestration.expressions.nodes import Apply, Function, Json, Tree
from orchestration.refs import Expression, Join, Parameter, Run

_KEY = "$expression"
_KINDS: dict[str, type[Expression[object]]] = {
    kind.__name__: kind
    for kind in (
        nodes.Result,
        Parameter,
        Run,
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


def encode(tree: Tree) -> Json:
    """Return a tree as JSON."""
    if tree is None or isinstance(tree, str | int | float):
        return tree
    if isinstance(tree, Expression):
        kind = type(tree).__name__
        if kind not in _KINDS:
            raise ExpressionError(f"{tree!r} can't be encoded; it is to be resolved first")
        values = [encode(getattr(tree, f.name)) for f in fields(tree)]  # type: ignore[arg-type]  # nodes are dataclasses, their base is not
        return {_KEY: [kind, *values]}
    if isinstance(tree, Mapping):
        return wrapped({key: encode(value) for key, value in tree.items()})
    if isinstance(tree, Sequence):
        return [encode(value) for value in tree]
    return tree


def wrapped(plain: Mapping[str, Json]) -> Json:
    """Return an encoded mapping, marked as a literal where it would be taken for a node."""
    return {_KEY: ["literal", plain]} if _KEY in plain else plain


def is_node(document: Mapping[str, Json]) -> bool:
    """Return whether an object is an encoded expression, or a literal marked as one."""
    return _KEY in document


def decode(value: Json) -> Tree:
    """Return the tree that :func:`encode` was given."""
    if isinstance(value, Mapping):
        if is_node(value):
            return decode_with(value, decode)
        return {key: decode(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [decode(item) for item in value]
    return value


def decode_with(document: Mapping[str, Json], inner: Callable[[Json], Tree]) -> Tree:
    """Return the expression that an object encodes; ``inner`` decodes what is inside."""
    kind, *arguments = cast("Sequence[Json]", document[_KEY])
    if kind == "literal":
        literal = cast("Mapping[str, Json]", arguments[0])
        return {key: inner(item) for key, item in literal.items()}
    return _node(str(kind), [inner(argument) for argument in arguments])


def is_kind(name: object) -> bool:
    """Return whether a name is that of an expression."""
    return name in _KINDS


def _node(kind: str, decoded: Sequence[Tree]) -> Expression[object]:
    cls = _KINDS[kind]
    values = [tuple(value) if isinstance(value, list) else value for value in decoded]
    if cls is Apply:
        values[0] = Function(str(values[0]))
    return cls(*values)
