"""The permissions with which executions of a state machine see each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from orchestration.deploy.permissions.statements import Statement

if TYPE_CHECKING:
    from orchestration.deploy.account import Account
    from orchestration.graph import Workflow


def overlaps(workflow: Workflow, account: Account) -> Iterator[Statement]:
    """Yield what the policy for runs that overlap needs."""
    policy = workflow.overlapping
    if policy == "allow":
        return
    machine = account.arn("states", f"stateMachine:{workflow.name}")
    actions, resources = {"states:ListExecutions"}, {machine}
    if policy == "queue":
        actions.add("states:DescribeExecution")
        resources.add(account.arn("states", f"execution:{workflow.name}:*"))
    yield Statement("SeeOtherRuns", frozenset(actions), frozenset(resources)).by("overlap")
