"""Conditions as users write them: comparisons of parameters and outputs, and/or/not.

In YAML each is a mapping with one key: ``{equal: [{parameter: mode}, full]}``,
``{all: [<condition>, …]}``, ``{not: <condition>}``. A parameter or an output that is true or false
is a condition by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any as Anything
from typing import Final, cast

from orchestration.errors import near
from orchestration.expressions.nodes import All, Any, Compare, Comparison, Not, Tree
from orchestration.refs import Expression, FirstOf, Parameter, Ref, parse, written

COMPARISONS: Final[Mapping[str, Comparison]] = {
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "at_most": "le",
    "greater": "gt",
    "at_least": "ge",
}
_NAMES: Final = {op: name for name, op in COMPARISONS.items()}
_REFERENCES: Final = ("ref", "parameter", "first_of")
FORMS: Final = (*COMPARISONS, "in", "all", "any", "not", *_REFERENCES)
"""The key of each written form."""
_EXAMPLE: Final = "{equal: [{parameter: mode}, full]}"


def parse_condition(value: object) -> Expression[bool]:
    """Read a condition from its written form; a ``ValueError`` says what is wrong."""
    if isinstance(value, Compare | All | Any | Not | Parameter | Ref | FirstOf):
        return cast("Expression[bool]", value)
    if isinstance(value, bool):
        raise ValueError(f"is always {str(value).lower()}; compare something: {_EXAMPLE}")
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ValueError(f"expected a condition with one key, got {value!r}; write {_EXAMPLE}")
    [(form, argument)] = value.items()
    match form:
        case "all" | "any":
            conditions = tuple(map(parse_condition, _list(form, argument)))
            return All(conditions) if form == "all" else Any(conditions)
        case "not":
            return Not(parse_condition(argument))
        case "in":
            left, values = _pair(form, argument)
            among = tuple(_operand(each) for each in _list(form, values))
            return Any(tuple(Compare("eq", _operand(left), each) for each in among))
        case str() if form in COMPARISONS:
            left, right = _pair(form, argument)
            return Compare(COMPARISONS[form], _operand(left), _operand(right))
        case str() if form in _REFERENCES:
            return cast("Expression[bool]", parse(value))
    raise ValueError(f"there is no condition {form!r}{near(str(form), FORMS)}")


def _list(form: str, argument: object) -> list[object]:
    if not isinstance(argument, list | tuple) or not argument:
        raise ValueError(f"expected a list after {form}, got {argument!r}")
    return list(argument)


def _pair(form: str, argument: object) -> list[object]:
    if not isinstance(argument, list | tuple) or len(argument) != 2:
        raise ValueError(f"expected a list of two values after {form}, got {argument!r}")
    return list(argument)


def _operand(value: object) -> Tree:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"is {value!r}, which JSON has no number for")
    if isinstance(value, str | bool | int | float | Expression):
        return value
    if isinstance(value, Mapping):
        return parse(value)
    raise ValueError(f"expected a reference, text, a number, true or false, got {value!r}")


def written_condition(node: Expression[object]) -> object:
    """Write a condition as a user would in YAML."""
    match node:
        case Compare(op, left, right):
            return {_NAMES[op]: [_written_operand(left), _written_operand(right)]}
        case All(conditions):
            return {"all": [written_condition(each) for each in conditions]}
        case Any(conditions):
            return {"any": [written_condition(each) for each in conditions]}
        case Not(condition):
            return {"not": written_condition(condition)}
        case _:
            return written(node)


def _written_operand(value: Tree) -> object:
    return written(value) if isinstance(value, Expression) else value


def condition_schema() -> dict[str, Anything]:
    """Return the JSON Schema of the written forms; conditions inside of others are not described.

    What stands for a condition inside is ``{"title": "Condition"}``, for an operand
    ``{"title": "Operand"}``.
    """
    condition, operand = {"title": "Condition"}, {"title": "Operand"}
    pair = {"type": "array", "items": operand, "minItems": 2, "maxItems": 2}
    several = {"type": "array", "items": condition, "minItems": 1}
    values = {"type": "array", "items": operand, "minItems": 1}
    among = {"type": "array", "prefixItems": [operand, values], "minItems": 2, "maxItems": 2}
    forms: dict[str, Anything] = {
        **dict.fromkeys(COMPARISONS, pair),
        "in": among,
        "all": several,
        "any": several,
        "not": condition,
        "ref": {"type": "string"},
        "parameter": {"type": "string"},
        "first_of": {"type": "array", "items": operand, "minItems": 2},
    }
    return {
        "title": "Condition",
        "description": f"A condition, known only during a run: {_EXAMPLE}",
        "type": "object",
        "properties": forms,
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
    }
