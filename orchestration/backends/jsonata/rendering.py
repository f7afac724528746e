"""Nodes of the expression language as JSONata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from orchestration.backends.jsonata import functions
from orchestration.backends.jsonata.code import Code, Kind, present, scalar, sure
from orchestration.backends.jsonata.writing import (
    checked,
    enclosed,
    field,
    field_value,
    literal,
    quote,
)
from orchestration.errors import UnsupportedError
from orchestration.expressions import (
    All,
    Any,
    Apply,
    Best,
    Compare,
    Field,
    Item,
    Join,
    Json,
    Not,
    Parameter,
    Result,
    Run,
    Tree,
)
from orchestration.refs import Expression

_OPERATORS = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class Names(Protocol):
    """Where the values of a run are found in JSONata."""

    def reference(self, leaf: Result | Parameter | Run | Item) -> str:
        """The JSONata that gives a leaf's value: ``$train__job.status``."""

    def kind(self, leaf: Result | Parameter | Run | Item) -> Kind:
        """What kind its value is sure to have."""


def render(node: Expression[object], names: Names) -> str:
    """The JSONata of an expression, without ``{%`` and ``%}``."""
    return _node(node, names).text


def condition(node: Expression[bool], names: Names) -> str:
    """The JSONata of an expression that is to be true or false, and nothing else."""
    return sure(_node(node, names), "boolean").text


def tree(value: Tree, names: Names) -> Json:
    """A tree as a field of a state: literals stay what they are, expressions become ``{% … %}``.

    A literal that Step Functions would not leave alone is written as an expression of its own.
    """
    if isinstance(value, Expression):
        return enclosed(render(value, names))
    if isinstance(value, Mapping):
        if any(key.endswith(".$") for key in value):
            return enclosed(_tree(value, names).text)
        return {key: tree(item, names) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [tree(item, names) for item in value]
    return field_value(value)


def _node(node: Expression[object], names: Names) -> Code:
    match node:
        case Result() | Parameter() | Run() | Item():
            return Code(names.reference(node), names.kind(node), _label(node))
        case Join(parts):
            return _join([_tree(part, names) for part in parts])
        case Field(of, key):
            return _field(_node(of, names), key)
        case Compare(op, left, right):
            return _compare(op, _tree(left, names), _tree(right, names))
        case All(conditions):
            return _connect("and", "true", [_node(c, names) for c in conditions])
        case Any(conditions):
            return _connect("or", "false", [_node(c, names) for c in conditions])
        case Not(negated):
            return Code(f"$not({condition(negated, names)})", "boolean", "a condition")
        case Best(items, key, direction):
            return _best(_node(items, names), key, direction)
        case Apply():
            return functions.call(node, lambda argument: _tree(argument, names))
        case _:
            raise UnsupportedError([f"{node!r} has no value while a run goes on"])


def _label(leaf: Result | Parameter | Run | Item) -> str:
    match leaf:
        case Result(step, output):
            return f"{step}.{output}"
        case Parameter(name):
            return f"parameter {name}"
        case Run():
            return "the run"
        case Item():
            return "item"


def _tree(value: Tree, names: Names) -> Code:
    """A tree inside an expression."""
    if isinstance(value, Expression):
        return _node(value, names)
    if isinstance(value, Mapping):
        fields = [f"{quote(key)}: {present(_tree(v, names)).text}" for key, v in value.items()]
        return Code(f"{{{', '.join(fields)}}}", "object")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return Code(f"[{', '.join(_element(_tree(v, names), v) for v in value)}]", "array")
    if isinstance(value, str):
        return Code(literal(value), "string", repr(value))
    if isinstance(value, bool):
        return Code(literal(value), "boolean", str(value))
    if value is None:
        return Code("null", label="null")
    return Code(literal(value), "number", str(value), atomic=value >= 0)


def _element(code: Code, value: Tree) -> str:
    # JSONata's [a, b] takes apart what is a list, unless it is written as one on the spot.
    if code.kind in ("array", "any") and isinstance(value, Expression):
        return f"($v := {present(code).text}; $type($v) = 'array' ? [[$v]] : $v)"
    return present(code).operand


def _join(parts: list[Code]) -> Code:
    texts = [scalar(part).operand for part in parts]
    if not texts:
        return Code("''", "string", "a text")
    if len(texts) == 1:
        text = texts[0] if parts[0].kind == "string" else f"$string({texts[0]})"
        return Code(text, "string", parts[0].label)
    return Code(" & ".join(texts), "string", "a text", atomic=False)


def _field(of: Code, key: str) -> Code:
    label = f"{of.label}.{key}"
    if of.kind == "object" and of.atomic and not of.text.startswith("{"):
        return Code(field(of.text, key), label=label, present=False)
    text = checked(of.text, "$type($v) = 'object'", field("$v", key), f"there is no {label}")
    return Code(text, label=label, present=False)


def _compare(op: str, left: Code, right: Code) -> Code:
    if op in ("eq", "ne"):
        left, right = present(left), present(right)
    else:
        left, right = sure(left, "number"), sure(right, "number")
    text = f"{left.operand} {_OPERATORS[op]} {right.operand}"
    return Code(text, "boolean", "a comparison", atomic=False)


def _connect(operator: str, empty: str, conditions: list[Code]) -> Code:
    conditions = [sure(each, "boolean") for each in conditions]
    if not conditions:
        return Code(empty, "boolean", empty)
    if len(conditions) == 1:
        return conditions[0]
    text = f" {operator} ".join(each.operand for each in conditions)
    return Code(text, "boolean", "a condition", atomic=False)


def _best(items: Code, key: str, direction: str) -> Code:
    ranked = f"$type($o) = 'object' and $type({field('$o', key)}) = 'number'"
    sign = ">" if direction == "max" else "<"
    better = f"{field('$b', key)} {sign} {field('$a', key)}"
    test = (
        "$type($v) = 'array' and $count($v) > 0"
        f" and $count($filter($v, function($o) {{ {ranked} }})) = $count($v)"
    )
    then = f"$reduce($v, function($a, $b) {{ {better} ? $b : $a }})"
    message = f"{items.label} is empty, or no list of objects with a number {key}"
    return Code(checked(items.text, test, then, message), "object", f"the best of {items.label}")
