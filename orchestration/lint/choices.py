"""Rules of Choice states.

https://docs.aws.amazon.com/step-functions/latest/dg/state-choice.html (read November 2026).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.errors import near
from orchestration.lint.findings import Finding
from orchestration.lint.machines import State
from orchestration.lint.values import TIME, is_expression, is_placeholder

_COMPARED: Final[dict[str, type | tuple[type, ...]]] = {
    "String": str,
    "Numeric": (int, float),
    "Boolean": bool,
    "Timestamp": str,
}
_ORDERS = ("Equals", "LessThan", "GreaterThan", "LessThanEquals", "GreaterThanEquals")
_COMPARISONS: Final[dict[str, type | tuple[type, ...]]] = {
    **{
        f"{kind}{order}{path}": (str if path else types)
        for kind, types in _COMPARED.items()
        for order in (("Equals",) if kind == "Boolean" else _ORDERS)
        for path in ("", "Path")
    },
    "StringMatches": str,
    **{f"Is{kind}": bool for kind in ("Null", "Present", *_COMPARED)},
}
_NESTED = ("And", "Or", "Not")
_AROUND = frozenset({"Next", "Comment", "Assign"})
_RESULTS = _AROUND | {"Output"}


def findings(state: State) -> Iterator[Finding]:
    """Yield what is wrong with the rules of a Choice state."""
    if state.type != "Choice":
        return
    if "Default" not in state.fields and not _is_complete(state):
        text = "has no Default, so the execution fails with States.NoChoiceMatched where no rule"
        yield Finding("no-default", state.path, f"{text} matches; name a state, if only a Fail")
    yield from _repeated(state)
    for path, rule in state.objects("Choices"):
        if "Next" not in rule:
            yield Finding("missing-field", path, "Next is required in a rule")
        if state.language == "JSONata":
            yield from _condition(rule, path)
        else:
            yield from _rule(rule, path, _AROUND)


def _is_complete(state: State) -> bool:
    """Return whether one of the rules always matches."""
    rules = [rule for _, rule in state.objects("Choices")]
    if any(rule.get("Condition") in (True, "{% true %}") for rule in rules):
        return True
    facts = [_fact(rule) for rule in rules]
    return any(
        fact is not None and (fact[0], fact[1], not fact[2]) in facts[:index]
        for index, fact in enumerate(facts)
    )


def _fact(rule: Mapping[str, Any]) -> tuple[str, str, bool] | None:
    """Return what a rule asks and the answer it wants, where that is true or false."""
    if isinstance(rule.get("Not"), Mapping):
        inner = _fact(rule["Not"])
        return None if inner is None else (inner[0], inner[1], not inner[2])
    for name in ("BooleanEquals", "IsPresent", "IsNull"):
        if isinstance(rule.get(name), bool):
            return str(rule.get("Variable")), name, rule[name]
    return None


def _repeated(state: State) -> Iterator[Finding]:
    """Yield the rules that ask what a rule before them has asked."""
    seen: dict[str, str] = {}
    for path, rule in state.objects("Choices"):
        asked = {name: value for name, value in rule.items() if name not in _RESULTS}
        same = seen.setdefault(json.dumps(asked, sort_keys=True, default=str), path)
        if same != path:
            text = f"asks what {same} asks, so it never matches; remove it, or ask something else"
            yield Finding("unused-rule", path, text)


def _condition(rule: Mapping[str, Any], path: str) -> Iterator[Finding]:
    known = _AROUND | {"Condition", "Output"}
    for name in rule:
        if name in known:
            continue
        where = f"{path}/{name}"
        if name in _COMPARISONS or name in (*_NESTED, "Variable"):
            text = "is a comparison of JSONPath, and the state is in JSONata; write a Condition"
            yield Finding("wrong-language", where, text)
        else:
            yield Finding("unknown-field", where, f"is unknown{near(str(name), known)}")
    condition = rule.get("Condition")
    if "Condition" not in rule:
        yield Finding("missing-field", path, "Condition is required in a rule")
    elif not (isinstance(condition, bool) or is_expression(condition) or is_placeholder(condition)):
        text = f"expected an expression, not {condition!r}; write {{% … %}} around it"
        yield Finding("wrong-type", f"{path}/Condition", text)


def _rule(rule: Mapping[str, Any], path: str, around: frozenset[str]) -> Iterator[Finding]:
    if "Condition" in rule:
        text = (
            "is a field of JSONata, and the state is in JSONPath; write Variable and a comparison"
        )
        yield Finding("wrong-language", f"{path}/Condition", text)
        return
    tests = [name for name in rule if name in _COMPARISONS or name in _NESTED]
    for name in rule:
        if name not in around | {"Variable"} and name not in tests:
            hint = near(str(name), [*_COMPARISONS, *_NESTED])
            yield Finding("unknown-field", f"{path}/{name}", f"there is no such comparison{hint}")
    if len(tests) > 1:
        text = f"{' and '.join(tests)} stand in one rule; combine them by And"
        yield Finding("exclusive-fields", f"{path}/{tests[1]}", text)
    if not tests:
        if set(rule) <= around | {"Variable"}:
            yield Finding("missing-field", path, "a comparison is required in a rule")
        return
    yield from _test(rule, tests[0], path)


def _test(rule: Mapping[str, Any], name: str, path: str) -> Iterator[Finding]:
    value, where = rule[name], f"{path}/{name}"
    if name in _NESTED:
        rules = [value] if name == "Not" else value
        if not isinstance(rules, list) or not all(isinstance(each, Mapping) for each in rules):
            expected = "a rule" if name == "Not" else "a list of rules"
            yield Finding("wrong-type", where, f"expected {expected}")
            return
        if not rules:
            yield Finding("wrong-value", where, "is empty; it needs one rule at least")
        for index, each in enumerate(rules):
            inner = where if name == "Not" else f"{where}/{index}"
            if "Next" in each:
                text = "only the outermost rule has a Next; move it there"
                yield Finding("unknown-field", f"{inner}/Next", text)
            yield from _rule(each, inner, _AROUND)
        return
    if "Variable" not in rule:
        yield Finding("missing-field", path, f"Variable is required beside {name}")
    types = _COMPARISONS[name]
    wrong = not isinstance(value, types) or (isinstance(value, bool) and types is not bool)
    if wrong and not is_placeholder(value):
        yield Finding("wrong-type", where, f"{name} does not compare with {value!r}")
    elif name.startswith("Timestamp") and not (
        name.endswith("Path") or TIME.fullmatch(value) or is_placeholder(value)
    ):
        text = f"expected a time such as 2026-11-01T18:00:00Z, not {value!r}"
        yield Finding("wrong-value", where, text)
