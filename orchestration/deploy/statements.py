"""Statements of an IAM policy, and fewer of them that allow the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Statement:
    """Actions that are allowed on resources under a condition."""

    sid: str
    actions: frozenset[str]
    resources: frozenset[str]
    condition: tuple[tuple[str, str, frozenset[str]], ...]
    """Operator, key and values."""

    def document(self, sid: str) -> dict[str, Any]:
        """The statement as IAM takes it."""
        written: dict[str, Any] = {
            "Sid": sid,
            "Effect": "Allow",
            "Action": sorted(self.actions),
            "Resource": sorted(self.resources),
        }
        for operator, key, values in self.condition:
            written.setdefault("Condition", {}).setdefault(operator, {})[key] = _few(values)
        return written


def merged(statements: Iterable[Statement]) -> list[Statement]:
    """The same permissions in fewer statements; each step is exact."""
    found = list(dict.fromkeys(statements))
    found = _joined(found, "condition")
    found = _joined(found, "actions")
    return _joined(found, "resources")


def _joined(
    statements: Sequence[Statement], part: Literal["condition", "actions", "resources"]
) -> list[Statement]:
    groups: dict[Any, list[Statement]] = {}
    for statement in statements:
        match part:
            case "condition":
                keys = tuple((o, k) for o, k, _ in statement.condition)
                # Values of several keys can't be united one by one.
                alone = statement.condition if len(keys) > 1 else None
                group: Any = (statement.actions, statement.resources, keys, alone)
            case "actions":
                group = (statement.resources, statement.condition)
            case _:
                group = (statement.actions, statement.condition)
        groups.setdefault(group, []).append(statement)
    return [_united(members) for members in groups.values()]


def _united(members: Sequence[Statement]) -> Statement:
    first = members[0]
    return replace(
        first,
        actions=frozenset().union(*(m.actions for m in members)),
        resources=frozenset().union(*(m.resources for m in members)),
        condition=tuple(
            (operator, key, frozenset().union(*(m.condition[i][2] for m in members)))
            for i, (operator, key, _) in enumerate(first.condition)
        ),
    )


def _few(values: frozenset[str]) -> str | list[str]:
    ordered = sorted(values)
    return ordered[0] if len(ordered) == 1 else ordered
