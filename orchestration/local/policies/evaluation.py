"""The evaluation of policies: an explicit denial wins, then anything that is allowed.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

_SPECIAL: Final = re.compile(r"(\$\{[^}]*\}|\*|\?)")
_SEVERAL: Final = ("ForAnyValue:", "ForAllValues:")


@dataclass(frozen=True)
class Need:
    """One action on one resource, with what IAM knows of the call."""

    action: str
    resource: str
    """Its ARN; ``*`` where the action has none, and empty where it is not known here."""
    context: Mapping[str, str] = field(default_factory=dict)
    """Condition keys with their values."""


Decision: TypeAlias = Literal["allowed", "explicitDeny", "implicitDeny"]


def allows(policies: Iterable[Mapping[str, Any]], need: Need) -> bool:
    """Return whether policies together allow something."""
    return decision(policies, need) == "allowed"


def decision(policies: Iterable[Mapping[str, Any]], need: Need) -> Decision:
    """Return what policies together say of something, in IAM's words."""
    effects = {
        statement["Effect"]
        for policy in policies
        for statement in _list(policy["Statement"])
        if _applies(statement, need)
    }
    if "Deny" in effects:
        return "explicitDeny"
    return "allowed" if effects else "implicitDeny"


def matches(pattern: str, text: str, context: Mapping[str, str] | None = None) -> bool:
    """Return whether a text has the form of a pattern: ``${*}`` is an asterisk.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html

    >>> matches("data/a${*}b/*", "data/a*b/c"), matches("a?", "a")
    (True, False)
    """
    wild = {"*": ".*", "?": "."}
    parts = []
    for part in _SPECIAL.split(pattern):
        if part.startswith("${"):
            literal = part[2] if len(part) == 4 else (context or {}).get(part[2:-1])
            if literal is None:
                return False
            parts.append(re.escape(literal))
        else:
            parts.append(wild.get(part) or re.escape(part))
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def _applies(statement: Mapping[str, Any], need: Need) -> bool:
    return (
        _names(statement, "Action", lambda p: matches(p.lower(), need.action.lower()))
        and (
            not need.resource
            or _names(statement, "Resource", lambda p: matches(p, need.resource, need.context))
        )
        and _holds(statement.get("Condition", {}), need.context)
    )


def _names(statement: Mapping[str, Any], what: str, matching: Callable[[str], bool]) -> bool:
    if f"Not{what}" in statement:
        return not any(map(matching, _list(statement[f"Not{what}"])))
    return any(map(matching, _list(statement[what])))


def _holds(conditions: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    # Names of keys are compared without case; values of tags are not.
    known = {key.lower(): value for key, value in context.items()}
    return all(
        _met(operator, known.get(key.lower()), [str(v) for v in _list(values)], context)
        for operator, pairs in conditions.items()
        for key, values in pairs.items()
    )


def _met(operator: str, value: str | None, wanted: list[str], context: Mapping[str, str]) -> bool:
    name = operator
    for prefix in _SEVERAL:
        name = name.removeprefix(prefix)
    if name == "Null":
        return (value is None) == (wanted[0].lower() == "true")
    optional = name.endswith("IfExists") or operator.startswith("ForAllValues:")
    name = name.removesuffix("IfExists")
    negated = "Not" in name
    test = _TESTS.get(name.replace("Not", ""))
    if test is None:
        raise LookupError(f"the condition {operator} is not evaluated here")
    if value is None:
        return optional or negated
    return any(test(each, value, context) for each in wanted) != negated


def _arn(pattern: str, text: str, context: Mapping[str, str]) -> bool:
    # Each of the six parts is compared by itself.
    pair = (pattern.split(":", 5), text.split(":", 5))
    same = len(pair[0]) == len(pair[1])
    return same and all(matches(p, t, context) for p, t in zip(*pair, strict=True))


_TESTS: Final[Mapping[str, Callable[[str, str, Mapping[str, str]], bool]]] = {
    "ArnEquals": _arn,
    "ArnLike": _arn,
    "Bool": lambda pattern, text, _: pattern.lower() == text.lower(),
    "NumericEquals": lambda pattern, text, _: float(text) == float(pattern),
    "NumericGreaterThan": lambda pattern, text, _: float(text) > float(pattern),
    "NumericGreaterThanEquals": lambda pattern, text, _: float(text) >= float(pattern),
    "NumericLessThan": lambda pattern, text, _: float(text) < float(pattern),
    "NumericLessThanEquals": lambda pattern, text, _: float(text) <= float(pattern),
    "StringEquals": lambda pattern, text, _: pattern == text,
    "StringEqualsIgnoreCase": lambda pattern, text, _: pattern.lower() == text.lower(),
    "StringLike": matches,
}


def _list(value: Any) -> Iterator[Any]:
    return iter(value if isinstance(value, list) else [value])
