"""Roles that single requests are sent as, often in other accounts: what each must trust and allow.

Whoever owns such a role writes both policies, so they are shown, as those of model groups are:
https://docs.aws.amazon.com/step-functions/latest/dg/concepts-access-cross-acct-resources.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestration.deploy.account import Account
from orchestration.deploy.permissions.patterns import ANY, Known, iam, listings, pattern
from orchestration.deploy.permissions.policies import Runs, of_operation
from orchestration.deploy.permissions.requests import calls
from orchestration.deploy.permissions.statements import Statement, document
from orchestration.graph import Workflow, stage_of

_GROUP: Final = "ModelPackageGroupName"
_VERSIONS: Final = ":model-package/*"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedRole:
    """A role that a pipeline's requests are sent as."""

    arn: str
    policy: Mapping[str, Any]
    """The permissions that it needs."""

    def told(self, principal: str) -> str:
        """Return what its owner has to write, so that a principal may assume and use it."""
        trusted = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Sid": "Assume",
                    "Effect": "Allow",
                    "Principal": {"AWS": principal},
                    "Action": "sts:AssumeRole",
                }
            ],
        }
        name, owner = self.arn.rpartition("/")[2], self.arn.split(":")[4]
        return (
            f"role {name} of account {owner} is assumed; it needs this trust policy (aws iam "
            f"update-assume-role-policy): {json.dumps(trusted)} and these permissions (aws iam "
            f"put-role-policy): {json.dumps(self.policy)}"
        )


def assumed(workflow: Workflow, account: Account, runs: Runs) -> tuple[AssumedRole, ...]:
    """Return the roles that runs assume, those that only a run knows left out."""
    needed: dict[str, list[Statement]] = {}
    for parameters in runs:
        known = Known(parameters=parameters, listings=listings(workflow.graph))
        groups = dict(_groups(workflow, known))
        for step, operation, inside in calls(workflow.graph, known):
            role = pattern(operation.assumes, inside)
            if role and ANY not in role:
                owner = replace(account, id=role.split(":")[4])
                place = {**owner.place, "pipeline": workflow.name}
                needed.setdefault(role, []).extend(
                    _narrowed(each, groups.get(stage_of(step))).by(step)
                    for each in of_operation(operation, inside, place)
                )
    return tuple(
        AssumedRole(arn=role, policy=document(*statements)) for role, statements in needed.items()
    )


def _groups(workflow: Workflow, known: Known) -> Iterator[tuple[str, str]]:
    """Yield the model group that each stage's assumed role is for."""
    for step, operation, inside in calls(workflow.graph, known):
        if operation.assumes is not None and _GROUP in operation.request:
            yield stage_of(step), iam(pattern(operation.request[_GROUP], inside)).rpartition("/")[2]


def _narrowed(statement: Statement, group: str | None) -> Statement:
    """Return a statement about the versions of one group, where it is about those of all."""
    if group is None:
        return statement
    named = (
        f"{resource.removesuffix('*')}{group}/*" if resource.endswith(_VERSIONS) else resource
        for resource in statement.resources
    )
    return replace(statement, resources=frozenset(named))
