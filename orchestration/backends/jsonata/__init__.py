"""Expressions as JSONata 2.0.6, the query language of Step Functions.

What :func:`orchestration.expressions.evaluate` refuses, the JSONata refuses too: a path that leads
nowhere is nothing in JSONata, and nothing vanishes from a text and equals no number. So wherever
the kind of a value is not known from its source, the expression checks it and ends in ``$error``.
Only the value of a whole field may be nothing: Step Functions itself fails the state then.
"""

from orchestration.backends.jsonata.code import Code, Demand, Kind
from orchestration.backends.jsonata.locations import location
from orchestration.backends.jsonata.rendering import (
    Leaf,
    Names,
    Part,
    condition,
    render,
    tree,
    written,
)
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
    "Code",
    "Demand",
    "Kind",
    "Leaf",
    "Names",
    "Part",
    "checked",
    "condition",
    "enclosed",
    "field",
    "field_value",
    "literal",
    "location",
    "path",
    "quote",
    "render",
    "step",
    "tree",
    "written",
]
