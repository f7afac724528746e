"""Statements of an IAM policy, merged where that allows exactly the same, and their templates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

_REQUEST_FIELD = re.compile(r"\{([A-Z]\w*)\}")

Condition: TypeAlias = Mapping[str, Mapping[str, str]]

OWN_REQUEST: Condition = {"StringEquals": {"aws:RequestTag/orchestration:pipeline": "{pipeline}"}}
OWN_RESOURCE: Condition = {"StringEquals": {"aws:ResourceTag/orchestration:pipeline": "{pipeline}"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Actions on resources, under a condition."""

    sid: str
    """The statement's name; statements on the same resources are merged."""
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    source: str
    """The page that documents it."""
    condition: Condition = field(default_factory=dict)
    where: str | None = None
    """Applies only if the request has this field."""

    def applies(self, request: Mapping[str, object]) -> bool:
        """Return whether it is needed for a request."""
        return self.where is None or self.where in request

    def fields(self) -> frozenset[str]:
        """The fields of the request that its resources and its condition depend on."""
        values = [value for pairs in self.condition.values() for value in pairs.values()]
        return frozenset(_REQUEST_FIELD.findall(" ".join([*self.resources, *values])))


def single(sid: str, action: str, resource: str, source: str, where: str | None = None) -> Grant:
    """Return the grant of one action on one resource."""
    return Grant(sid=sid, actions=(action,), resources=(resource,), source=source, where=where)


@dataclass(frozen=True, slots=True)
class Statement:
    """Actions that are allowed on resources under a condition."""

    sid: str
    actions: frozenset[str]
    resources: frozenset[str]
    condition: tuple[tuple[str, str, frozenset[str]], ...] = ()
    """Operator, key and values."""
    needed_by: frozenset[str] = field(default=frozenset(), compare=False)
    """The steps, or other things, that need it."""

    def by(self, *needed_by: str) -> Statement:
        """Return the statement as one that these need."""
        return replace(self, needed_by=frozenset(needed_by))

    def document(self, sid: str) -> dict[str, Any]:
        """Return the statement in IAM's form."""
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
    """Express the same permissions in fewer statements."""
    equal: dict[Statement, list[Statement]] = {}
    for statement in statements:
        equal.setdefault(statement, []).append(statement)
    merged = [_united(members) for members in equal.values()]
    merged = _joined(merged, "condition")
    merged = _joined(merged, "actions")
    return _needed_alone(_joined(merged, "resources"))


def _needed_alone(statements: Sequence[Statement]) -> list[Statement]:
    """Leave out statements that others cover."""
    alone: list[Statement] = []
    for statement in statements:
        others = [each for each in statements if each is not statement]
        if not any(_covers(other, statement) for other in others):
            covered = [each for each in others if _covers(statement, each)]
            needed_by = statement.needed_by.union(*(each.needed_by for each in covered))
            alone.append(replace(statement, needed_by=needed_by))
    return alone


def _covers(one: Statement, other: Statement) -> bool:
    """Return whether a statement allows at least what another one does."""
    return (
        one.actions >= other.actions
        and one.resources >= other.resources
        and (not one.condition or one.condition == other.condition)
    )


def document(*statements: Statement) -> dict[str, Any]:
    """Return statements, merged, as a policy in IAM's form."""
    return {"Version": "2012-10-17", "Statement": documents(merged(statements))}


def documents(statements: Iterable[Statement]) -> list[dict[str, Any]]:
    """Return statements in IAM's form; those of one name are numbered."""
    used: dict[str, int] = {}
    written = []
    for statement in statements:
        used[statement.sid] = count = used.get(statement.sid, 0) + 1
        written.append(statement.document(f"{statement.sid}{count if count > 1 else ''}"))
    return written


def _joined(
    statements: Sequence[Statement], part: Literal["condition", "actions", "resources"]
) -> list[Statement]:
    groups: dict[Any, list[Statement]] = {}
    for statement in statements:
        match part:
            case "condition":
                keys = tuple((o, k) for o, k, _ in statement.condition)
                # Values of several keys can't be merged key by key.
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
        needed_by=frozenset().union(*(m.needed_by for m in members)),
        condition=tuple(
            (operator, key, frozenset().union(*(m.condition[i][2] for m in members)))
            for i, (operator, key, _) in enumerate(first.condition)
        ),
    )


def _few(values: frozenset[str]) -> str | list[str]:
    ordered = sorted(values)
    return ordered[0] if len(ordered) == 1 else ordered
