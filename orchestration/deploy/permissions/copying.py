"""The policy of a role by which a service of AWS copies for a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from orchestration.deploy.account import Account
from orchestration.deploy.permissions.patterns import Known
from orchestration.deploy.permissions.policies import Runs, check_size
from orchestration.deploy.permissions.statements import Statement, document
from orchestration.graph import Workflow

Statements = Callable[[Workflow, str, Known, Mapping[str, str]], Iterator[Statement]]
"""Permissions that copies of a workflow need, if they name the role of an ARN."""


def copying(
    statements: Statements, workflow: Workflow, name: str, account: Account, runs: Runs
) -> Mapping[str, Any] | None:
    """Return the policy of the role ``name``; None if no copy of the workflow names it."""
    arn = account.role_arn(name)
    needed = [
        statement
        for parameters in runs
        for statement in statements(
            workflow, arn, Known(parameters=parameters, listings={}), account.place
        )
    ]
    if not needed:
        return None
    policy = document(*needed)
    check_size(policy, f"role {name}")
    return policy
