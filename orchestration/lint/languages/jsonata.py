"""Expressions of JSONata: their syntax, and the names that they read from outside.

https://docs.aws.amazon.com/step-functions/latest/dg/transforming-data.html (read November 2026):
JSONata 2.0.6 without ``$eval``, and with functions of AWS. The other functions are those that
``src/jsonata.js`` binds in https://github.com/jsonata-js/jsonata at ``v2.0.6`` (same date).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from orchestration.backends.jsonata.syntax import parse
from orchestration.lint.languages import types

FUNCTIONS: Final = frozenset(
    {
        *("abs", "append", "assert", "average", "base64decode", "base64encode", "boolean", "ceil"),
        *("clone", "contains", "count", "decodeUrl", "decodeUrlComponent", "distinct", "each"),
        *("encodeUrl", "encodeUrlComponent", "error", "exists", "filter", "floor", "formatBase"),
        *("formatInteger", "formatNumber", "fromMillis", "hash", "join", "keys", "length"),
        *("lookup", "lowercase", "map", "match", "max", "merge", "millis", "min", "not", "now"),
        *("number", "pad", "parse", "parseInteger", "partition", "power", "random", "range"),
        *("reduce", "replace", "reverse", "round", "shuffle", "sift", "single", "sort", "split"),
        *("spread", "sqrt", "string", "substring", "substringAfter", "substringBefore", "sum"),
        *("toMillis", "trim", "type", "uppercase", "uuid", "zip"),
    }
)
_PLACEHOLDER = re.compile(r"\$\{[\w.:-]+\}")


@dataclass(frozen=True, slots=True)
class Use:
    """A variable that an expression reads, and the fields that it reads of it."""

    name: str
    path: tuple[str, ...] = ()
    is_called: bool = False


@dataclass(slots=True)
class Reading:
    """The reads of an expression from outside."""

    uses: list[Use] = field(default_factory=list)
    contextless: list[str] = field(default_factory=list)
    """Names and ``$`` that stand where there is no context to read them of."""
    error: str | None = None
    """The fault in the syntax, if there is one."""
    type_faults: list[str] = field(default_factory=list)
    kind: str = types.ANY
    """The type of its value, where it shows."""


def expression(text: str) -> str:
    """Return an expression without what marks it as one."""
    return text[2:-2].strip()


@lru_cache(maxsize=4096)
def read(source: str) -> Reading:
    """Return what an expression reads, or what is wrong with it."""
    reading = Reading()
    try:
        tree = parse(source)
    except Exception as error:  # the library raises others than its own for bad syntax
        filled = _PLACEHOLDER.sub("x", source)
        if filled == source:
            code, text = getattr(error, "error", None), str(error) or type(error).__name__
            reading.error = f"{code}: {text}" if code and code not in text else text
            return reading
        # What is filled in when the definition is deployed may be any part of an expression.
        try:
            tree = parse(filled)
        except Exception:
            return reading
    _Walk(reading).node(tree, set(), has_context=False)
    reading.kind = types.kind(tree)
    return reading


class _Walk:
    """A walk over the tree of an expression, with the variables that it binds itself."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._applied: list[Any] = []
        """Calls that get what is left of their ``~>`` besides."""

    def node(  # noqa: C901 - one arm for each type of node
        self, node: Any, bound: set[str], *, has_context: bool
    ) -> None:
        """Note what a node and those below it read."""
        if node is None:
            return
        if node not in self._applied:
            self._reading.type_faults += types.faults(node, bound, has_context=has_context)
        if node.type == "apply":
            self._applied.append(node.rhs)
        match node.type:
            case "path":
                self._path(node, set(bound), has_context)
                return
            case "variable":
                self._variable(node, bound, has_context, ())
            case "name" | "wildcard" | "descendant" if not has_context:
                self._reading.contextless.append(str(node.value))
            case "bind":
                self._bind(node, bound, has_context)
            case "block":
                inner = set(bound)
                for each in node.expressions:
                    self.node(each, inner, has_context=has_context)
            case "lambda":
                inner = bound | {argument.value for argument in node.arguments}
                self.node(node.body, inner, has_context=has_context)
            case "function" | "partial":
                self._call(node, bound, has_context)
            case _:
                for each in _children(node):
                    self.node(each, bound, has_context=has_context)
        self._after(node, bound)

    def _bind(self, node: Any, bound: set[str], has_context: bool) -> None:
        if node.rhs.type == "lambda":
            bound.add(node.lhs.value)  # It may call itself.
        self.node(node.rhs, bound, has_context=has_context)
        bound.add(node.lhs.value)

    def _call(self, node: Any, bound: set[str], has_context: bool) -> None:
        procedure = node.procedure
        if procedure.type == "variable":
            if procedure.value not in bound:
                self._reading.uses.append(Use(procedure.value, is_called=True))
        elif procedure.type == "path" and len(procedure.steps) == 1:
            name = str(procedure.steps[0].value)
            self._reading.type_faults.append(f"{name} is no function; write ${name}(…)")
        else:
            self.node(procedure, bound, has_context=has_context)
        for argument in node.arguments or ():
            self.node(argument, bound, has_context=has_context)

    def _path(self, node: Any, bound: set[str], has_context: bool) -> None:
        steps = node.steps
        first = steps[0]
        if first.type == "variable":
            names = []
            for step in steps[1:] if not (first.predicate or first.stages) else ():
                if step.type != "name":
                    break
                names.append(str(step.value))
                if step.stages or step.predicate:
                    break
            self._variable(first, bound, has_context, tuple(names))
            self._after(first, bound)
        else:
            self.node(first, bound, has_context=has_context)
        bound |= {name for name in (first.focus, first.index) if name}
        for step in steps[1:]:
            bound |= {name for name in (step.focus, step.index) if name}
            for stage in step.stages or ():
                if stage.type == "index":
                    bound.add(stage.value)
            self.node(step, bound, has_context=True)
        self._after(node, bound)

    def _variable(
        self, node: Any, bound: set[str], has_context: bool, path: tuple[str, ...]
    ) -> None:
        if node.value in ("", "$"):
            if not has_context:
                self._reading.contextless.append(f"${node.value}")
        elif node.value not in bound:
            self._reading.uses.append(Use(node.value, path))

    def _after(self, node: Any, bound: set[str]) -> None:
        """Note what the predicates and the grouping behind a node read."""
        for stage in (*(node.predicate or ()), *(node.stages or ())):
            if stage.type == "index":
                bound.add(stage.value)
            elif stage.expr is not None:
                self.node(stage.expr, bound, has_context=True)
        if node.group is not None:
            for pair in node.group.lhs_object:
                for each in pair:
                    self.node(each, bound, has_context=True)


def _children(node: Any) -> Iterator[Any]:
    match node.type:
        case "binary" | "apply":
            yield from (node.lhs, node.rhs)
        case "unary":
            yield from node.expressions or ()
            for pair in node.lhs_object or ():
                yield from pair
            yield node.expression
        case "condition":
            yield from (node.condition, node.then, node._else)
        case "sort":
            yield from (term.expression for term in node.terms)
        case "filter":
            yield node.expr
        case _:
            return
