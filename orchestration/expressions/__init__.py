"""The small expression language over references.

Expressions are data. Every backend renders the same nodes: Step Functions as JSONata, Airflow
through :func:`evaluate`, and a test holds the two against each other.
"""

from orchestration.expressions.evaluate import Environment, evaluate
from orchestration.expressions.nodes import (
    SCALARS,
    All,
    Any,
    Apply,
    Best,
    Compare,
    Field,
    Function,
    Item,
    Json,
    Not,
    Result,
    Tree,
    apply,
    children,
    field,
    substitute,
    walk,
)
from orchestration.refs import (
    FirstOf,
    Join,
    Parameter,
    Run,
    RunAttempt,
    first_of,
    join,
    parameter,
    run_attempt,
    run_id,
)

__all__ = [
    "SCALARS",
    "All",
    "Any",
    "Apply",
    "Best",
    "Compare",
    "Environment",
    "Field",
    "FirstOf",
    "Function",
    "Item",
    "Join",
    "Json",
    "Not",
    "Parameter",
    "Result",
    "Run",
    "RunAttempt",
    "Tree",
    "apply",
    "children",
    "evaluate",
    "field",
    "first_of",
    "join",
    "parameter",
    "run_attempt",
    "run_id",
    "substitute",
    "walk",
]
