"""The rules of Choice states, as conditions of SageMaker Pipelines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.importing.state_machines.data import Data, Unknown, filled

_OPERATORS: Final = {
    "Equals": "Equals",
    "LessThan": "LessThan",
    "LessThanEquals": "LessThanOrEqualTo",
    "GreaterThan": "GreaterThan",
    "GreaterThanEquals": "GreaterThanOrEqualTo",
}
_TEST: Final = re.compile(r"(String|Numeric|Boolean)(\w*Equals|LessThan|GreaterThan)(Path)?")
_SIGNS: Final = {
    "=": "Equals",
    "<": "LessThan",
    "<=": "LessThanOrEqualTo",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqualTo",
}
_COMPARISON: Final = re.compile(r"(.+?)\s*(!=|<=|>=|=|<|>)\s*(.+)", re.DOTALL)
_ODD: Final = "unknown: "
_STRUCTURED: Final = re.compile(r"[()?:\[]|\bor\b|\bin\b")


def condition(rule: Mapping[str, Any], data: Data, language: str) -> dict[str, Any]:
    """Return the condition that a rule is; of no known type where nothing says the same."""
    if language == "JSONata":
        text = str(rule.get("Condition", "")).strip().removeprefix("{%").removesuffix("%}")
        return _expression(text.strip(), data)
    for word in ("And", "Or"):
        if word in rule:
            return _together(word, [condition(r, data, language) for r in rule[word]], str(rule))
    if "Not" in rule:
        return _not(condition(rule["Not"], data, language))
    for key, value in rule.items():
        test = _TEST.fullmatch(key)
        if test is not None and test[2] in _OPERATORS:
            left = data.path(str(rule.get("Variable", "")))
            right = data.path(str(value)) if test[3] else filled(value)
            return _compared(_OPERATORS[test[2]], left, right, str(rule))
    return _odd(str(dict(rule)))


def _expression(text: str, data: Data) -> dict[str, Any]:
    if _STRUCTURED.search(re.sub(r"'[^']*'|\"[^\"]*\"", "''", text)):
        return _odd(text)
    tests = [_test(each, data) for each in re.split(r"\band\b", text)]
    return tests[0] if len(tests) == 1 else _together("And", tests, text)


def _test(text: str, data: Data) -> dict[str, Any]:
    match = _COMPARISON.fullmatch(text.strip())
    if match is None:
        return _compared("Equals", data.expression(text), True, text)
    left, right = data.expression(match[1]), data.expression(match[3])
    if match[2] == "!=":
        return _not(_compared("Equals", left, right, text))
    return _compared(_SIGNS[match[2]], left, right, text)


def _compared(operator: str, left: Any, right: Any, text: str) -> dict[str, Any]:
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return _odd(text)
    return {"Type": operator, "LeftValue": left, "RightValue": right}


def _together(word: str, tests: list[dict[str, Any]], text: str) -> dict[str, Any]:
    """Return one condition of several; a run is asked for all of it where it is for one of them."""
    if any(map(_is_odd, tests)):
        return _odd(text)
    return {"Type": word, "Conditions": tests}


def _not(inner: dict[str, Any]) -> dict[str, Any]:
    return _odd(f"not {inner['Type']}") if _is_odd(inner) else {"Type": "Not", "Condition": inner}


def _odd(text: str) -> dict[str, Any]:
    return {"Type": f"{_ODD}{text}"}


def _is_odd(condition: Mapping[str, Any]) -> bool:
    return str(condition["Type"]).startswith(_ODD)


def is_whole(condition: Mapping[str, Any]) -> bool:
    """Return whether a condition says all of what decides."""
    return condition["Type"] in (*_OPERATORS.values(), "And", "Or", "Not")


def compared(condition: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the places that a condition compares with literals, and those."""
    for inner in (*condition.get("Conditions", ()), condition.get("Condition")):
        if inner:
            yield from compared(inner)
    left, right = condition.get("LeftValue"), condition.get("RightValue")
    for value, other in ((left, right), (right, left)):
        if isinstance(value, Mapping) and "Get" in value and isinstance(other, bool | int | float):
            yield str(value["Get"]), other
