"""A stage as it is where parameters have certain values, so that it can be checked with them."""

from __future__ import annotations

from collections.abc import Mapping
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
from orchestration.refs import Each, Expression, FirstOf, Ref, RunOutcome
from orchestration.stages.stage import Stage
from orchestration.stages.values import Model

S = TypeVar("S", bound=Stage)


def assuming(stage: S, parameters: Mapping[str, Json]) -> S:
    """The stage with its expressions over these parameters replaced by their values.

    It is the stage itself where it has none.
    """
    return cast(S, _model(stage, Values({}, parameters)))


def _model(model: Anything, values: Values) -> Anything:
    fields = {name: getattr(model, name) for name in type(model).model_fields}
    changed = {name: _value(value, values) for name, value in fields.items()}
    same = all(changed[name] is value for name, value in fields.items())
    return model if same else model.model_copy(update=changed)


def _value(value: Anything, values: Values) -> Anything:
    if isinstance(value, Compare | All | Any | Not):
        return value  # The condition of a stage, which no check of the stage asks for.
    if isinstance(value, Expression):
        return evaluate(value, values) if _is_known(value, values) else value
    if isinstance(value, Model):
        return _model(value, values)
    if isinstance(value, dict):
        made = {key: _value(item, values) for key, item in value.items()}
        return made if any(made[key] is not item for key, item in value.items()) else value
    if isinstance(value, tuple | list):
        items = type(value)(_value(item, values) for item in value)
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return value


def _is_known(expression: Expression[Anything], values: Values) -> bool:
    return not any(
        isinstance(node, Ref | FirstOf | ArnName | Each | RunOutcome | Result | Item | Run)
        or (isinstance(node, Parameter) and node.name not in values.parameters)
        for node in walk(expression)
    )
