"""Permissions to assume the roles that single requests are sent as."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from orchestration.deploy.account import refusal
from orchestration.deploy.permissions.patterns import ANY, Known, iam, pattern
from orchestration.deploy.permissions.statements import Statement
from orchestration.graph import Operation, stage_of

Sent: TypeAlias = tuple[str, Operation, Known]
"""An operation with its step and what is known around it."""
_REGISTRY: Final = re.compile(r"arn:[\w-]+:sagemaker:[\w-]+:(\d{12}):model-package(-group)?/")


def assumptions(sent: Collection[Sent], place: Mapping[str, str]) -> Iterator[Statement]:
    """Yield the permission to assume each role that operations are sent as.

    Of a role that only a run knows, those of the accounts whose model groups it is assumed for.

    Raises :class:`~orchestration.errors.DeployError` where none of these is known: any role of any
    account would be too much.
    """
    owners = _owners(sent)
    unknown: dict[str, None] = {}
    for step, operation, known in sent:
        role = pattern(operation.assumes, known)
        for arn in _arns(role, owners[role], place):
            action = frozenset(["sts:AssumeRole"])
            yield Statement("AssumeRoles", action, frozenset([iam(arn)])).by(step)
        if role == ANY and not owners[role] and not known.missing:
            unknown[stage_of(step)] = None
    if unknown:
        raise refusal(
            "roles that only a run knows can't be assumed",
            (
                f"stage {stage}: give registry_role a value, or name the model group by its ARN, "
                "which has the account of the role"
                for stage in unknown
            ),
        )


def _arns(role: str, owners: Iterable[str], place: Mapping[str, str]) -> list[str]:
    if role != ANY:
        return [role]
    return [f"arn:{place['partition']}:iam::{owner}:role/{ANY}" for owner in sorted(owners)]


def _owners(sent: Iterable[Sent]) -> Mapping[str, set[str]]:
    """Return the accounts of the registries that each role is assumed for."""
    owners: dict[str, set[str]] = defaultdict(set)
    for _, operation, known in sent:
        role = pattern(operation.assumes, known)
        for value in operation.request.values():
            if named := _REGISTRY.match(pattern(value, known)):
                owners[role].add(named[1])
    return owners
