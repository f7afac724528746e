"""Nodes of the expression language as JSONata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from orchestration.backends.jsonata import functions
from orchestration.backends.jsonata.code import (
    OPERATORS,
    SCALARS,
    Code,
    Demand,
    Kind,
    demanded,
)
from orchestration.backends.jsonata.locations import SCHEME, after_scheme, split
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
    RunAttempt,
    Tree,
    join,
)
from orchestration.refs import Expression

Leaf: TypeAlias = Result | Parameter | Run | RunAttempt | Item


class Part(NamedTuple):
    """A part of an expression that may have a variable of its own."""

    node: Expression[object]
    demand: Demand | None = None
    """The type required of it, checked at the variable's assignment."""


class Names(Protocol):
    """The places of a run's values in JSONata."""

    def reference(self, leaf: Leaf) -> Code:
        """Return the JSONata that gives a leaf's value (``$train__job.status``), and its kind."""

    def value(self, part: Part, write: Callable[[], Code]) -> Code:
        """Return a part of an expression: its variable, or else what ``write`` returns."""


def render(node: Tree, names: Names) -> str:
    """Return the JSONata of a tree, without ``{%`` and ``%}``."""
    return _Writer(names).code(node).text


def written(part: Part, names: Names) -> Code:
    """Return a part of an expression, with what is known of its value."""
    writer = _Writer(names)
    node, demand = part
    return writer.code(node) if demand is None else writer.asked(node, demand)


def condition(node: Expression[bool], names: Names) -> str:
    """Return the JSONata of an expression that must be true or false, and nothing else."""
    return _Writer(names).asked(node, "boolean").text


def tree(value: Tree, names: Names) -> Json:
    """Return a tree as a field of a state: literals stay, expressions become ``{% … %}``.

    A literal that Step Functions would not leave alone is written as an expression of its own.
    """
    if isinstance(value, Expression):
        return enclosed(render(value, names))
    if isinstance(value, Mapping):
        if any(key.endswith(".$") for key in value):
            return enclosed(_Writer(names).code(value).text)
        return {key: tree(item, names) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [tree(item, names) for item in value]
    return field_value(value)


class _Writer:
    """Writes trees, asking for the variable of each part that may have one."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def code(self, tree: Tree) -> Code:
        """Write a tree inside an expression."""
        if isinstance(tree, Apply | Best | Field):
            return self._names.value(Part(tree), lambda: self._node(tree))
        return self._node(tree) if isinstance(tree, Expression) else self._constant(tree)

    def asked(self, tree: Tree, demand: Demand) -> Code:
        """Write a tree that must be what is asked for, or an error."""
        if isinstance(tree, Result | Field | Item | Best | Parameter):
            write: Callable[[], Code] = lambda: demanded(self.code(tree), demand)  # noqa: E731
            return self._names.value(Part(tree, demand), write)
        return demanded(self.code(tree), demand)

    def harmless(self, tree: Tree) -> bool:
        """Return whether leaving a tree out of a text leaves no error out."""
        match tree:
            case str() | Run() | RunAttempt():
                return True
            case Parameter() | Result():
                return self._names.reference(tree).kind in SCALARS
            case Join(parts):
                return all(self.harmless(part) for part in parts)
            case _:
                return False

    def _node(self, node: Expression[object]) -> Code:
        match node:
            case Result() | Parameter() | Run() | RunAttempt() | Item():
                return self._names.reference(node)
            case Join(parts):
                return self._join(parts)
            case Field(of, key):
                return self._field(of, key)
            case Compare():
                return self._compare(node)
            case All(conditions):
                return self._connect("and", "true", conditions)
            case Any(conditions):
                return self._connect("or", "false", conditions)
            case Not(negated):
                text = self.asked(negated, "boolean").text
                return Code(f"$not({text})", "boolean", "a condition")
            case Best():
                return self._best(node)
            case Apply():
                return functions.call(node, self)
            case _:
                raise UnsupportedError([f"{node!r} has no value while a run goes on"])

    def _constant(self, value: Json | Mapping[str, Tree] | Sequence[Tree]) -> Code:
        if isinstance(value, Mapping):
            fields = [f"{quote(k)}: {self.asked(v, 'value').text}" for k, v in value.items()]
            return Code(f"{{{', '.join(fields)}}}", "object")
        if isinstance(value, Sequence) and not isinstance(value, str):
            return Code(f"[{', '.join(self._element(v) for v in value)}]", "array")
        if isinstance(value, str):
            return Code(literal(value), "string", repr(value))
        if isinstance(value, bool):
            return Code(literal(value), "boolean", str(value))
        if value is None:
            return Code("null", label="null")
        return Code(literal(value), "number", str(value), atomic=value >= 0)

    def _element(self, value: Tree) -> str:
        code = self.asked(value, "value")
        # JSONata's [a, b] takes apart what is a list, unless it is written as one on the spot.
        if code.kind in ("array", "any") and isinstance(value, Expression):
            return f"($v := {code.text}; $type($v) = 'array' ? [[$v]] : $v)"
        return code.operand

    def _join(self, parts: Sequence[str | Expression[object]]) -> Code:
        codes = self._row(parts)
        if not codes:
            return Code("''", "string", "a text")
        if len(codes) == 1:
            (code,) = codes
            text = code.operand if code.kind == "string" else f"$string({code.operand})"
            return Code(text, "string", code.label)
        # A text that is not atomic is itself a row of texts.
        texts = [c.text if c.kind == "string" else c.operand for c in codes]
        return Code(" & ".join(texts), "string", "a text", atomic=False)

    def _row(self, parts: Sequence[str | Expression[object]]) -> list[Code]:
        """Write the parts of a text; the beginning of an S3 URI may have a variable."""
        rest = after_scheme(Join(tuple(parts)))
        place = split(rest) if isinstance(rest, Join) else None
        if place is not None and place.path and isinstance(place.head, Expression):
            head = join(SCHEME, place.head)
            known = self._names.value(Part(head), lambda: self._node(head))
            if known.atomic:
                return [known, *(self.asked(part, "scalar") for part in place.path)]
        return [self.asked(part, "scalar") for part in parts]

    def _field(self, of: Expression[object], key: str) -> Code:
        code = self.code(of)
        label = f"{code.label}.{key}"
        kind = (code.fields or {}).get(key)
        if code.kind == "object" and code.atomic and not code.text.startswith("{"):
            text = field(code.text, key)
            return Code(text, kind or "any", label, present=code.present and kind is not None)
        text = checked(code.text, "$type($v) = 'object'", field("$v", key), f"{label} is missing")
        return Code(text, label=label, present=False)

    def _compare(self, node: Compare) -> Code:
        demand: Demand = "value" if node.op in ("eq", "ne") else "number"
        left, right = self.asked(node.left, demand), self.asked(node.right, demand)
        text = f"{left.operand} {OPERATORS[node.op]} {right.operand}"
        return Code(text, "boolean", "a comparison", atomic=False)

    def _connect(self, operator: str, empty: str, parts: Sequence[Expression[bool]]) -> Code:
        conditions = [self.asked(each, "boolean") for each in parts]
        if not conditions:
            return Code(empty, "boolean", empty)
        if len(conditions) == 1:
            return conditions[0]
        text = f" {operator} ".join(each.operand for each in conditions)
        return Code(text, "boolean", "a condition", atomic=False)

    def _best(self, node: Best) -> Code:
        items, key = self.code(node.items), node.key
        sign = ">" if node.direction == "max" else "<"
        better = f"{field('$b', key)} {sign} {field('$a', key)}"
        then = f"$reduce($v, function($a, $b) {{ {better} ? $b : $a }})"
        fields: Mapping[str, Kind] = {**(items.fields or {}), key: "number"}
        label = f"the best of {items.label}"
        if items.kind == "array" and (items.fields or {}).get(key) == "number":
            text = checked(items.text, "$count($v) > 0", then, f"{items.label} is empty")
            return Code(text, "object", label, fields=fields)
        ranked = f"$type($o) = 'object' and $type({field('$o', key)}) = 'number'"
        test = (
            "$type($v) = 'array' and $count($v) > 0"
            f" and $count($filter($v, function($o) {{ {ranked} }})) = $count($v)"
        )
        message = f"{items.label} is empty, or not a list of objects with a number {key}"
        return Code(checked(items.text, test, then, message), "object", label, fields=fields)
