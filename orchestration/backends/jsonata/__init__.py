"""Expressions as JSONata 2.0.6, the query language of Step Functions.

What :func:`orchestration.expressions.evaluate` refuses, the JSONata refuses too: a path that leads
nowhere is nothing in JSONata, and nothing vanishes from a text and equals no number. So wherever
the kind of a value is not known from its source, the expression checks it and ends in ``$error``.
Only the value of a whole field may be nothing: Step Functions itself fails the state then.
"""

from orchestration.backends.jsonata.code import Kind
from orchestration.backends.jsonata.rendering import Names, condition, render, tree
from orchestration.backends.jsonata.writing import (
    checked,
    enclosed,
    field,
    field_value,
    literal,
    path,
    quote,
    step,
)

__all__ = [
    "Kind",
    "Names",
    "checked",
    "condition",
    "enclosed",
    "field",
    "field_value",
    "literal",
    "path",
    "quote",
    "render",
    "step",
    "tree",
]
