"""A stage as it is where parameters have certain values, so that it can be checked with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as Anything
from typing import TypeVar, cast

from orchestration.expressions import (
    All,
    Any,
    ArnName,
    Compare,
    Item,
    Json,
    Not,
    Parameter,
    Result,
    Run,
    walk,
)
from orchestration.expressions.evaluate import Values, evaluate
from orchestration.refs import Each, Expression, FirstOf, Ref, RunOutcome, TimeText
from orchestration.stages.stage import Stage
from orchestration.stages.values import Model

S = TypeVar("S", bound=Stage)


def assuming(stage: S, parameters: Mapping[str, Json]) -> S:
    """The stage with its expressions over these parameters replaced by their values.

    It is the stage itself where it has none.
    """
    values = Values({}, parameters)

    def known(value: Expression[Anything]) -> Anything:
        if isinstance(value, Compare | All | Any | Not):
            return value  # The condition of a stage, which no check of the stage asks for.
        return evaluate(value, values) if _is_known(value, values) else value

    return replacing(stage, known)


def replacing(stage: S, replace: Callable[[Expression[Anything]], Anything]) -> S:
    """The stage with what ``replace`` returns in the place of each expression in its fields."""
    return cast(S, _value(stage, replace))


def _value(value: Anything, replace: Callable[[Expression[Anything]], Anything]) -> Anything:
    if isinstance(value, Expression):
        return replace(value)
    if isinstance(value, Model):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        changed = {name: _value(item, replace) for name, item in fields.items()}
        same = all(changed[name] is item for name, item in fields.items())
        return value if same else value.model_copy(update=changed)
    if isinstance(value, dict):
        made = {key: _value(item, replace) for key, item in value.items()}
        return made if any(made[key] is not item for key, item in value.items()) else value
    if isinstance(value, tuple | list):
        items = type(value)(_value(item, replace) for item in value)
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return value


def _is_known(expression: Expression[Anything], values: Values) -> bool:
    return not any(
        isinstance(
            node, Ref | FirstOf | ArnName | TimeText | Each | RunOutcome | Result | Item | Run
        )
        or (isinstance(node, Parameter) and node.name not in values.parameters)
        for node in walk(expression)
    )
