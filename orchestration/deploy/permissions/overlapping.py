"""The permissions with which executions of a state machine see, and stop, each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from orchestration.cleanup import COMPANION, leftovers
from orchestration.deploy.permissions.statements import Statement

if TYPE_CHECKING:
    from orchestration.deploy.account import Account
    from orchestration.graph import Overlap, Workflow

_SEES: Final[dict[Overlap, tuple[str, ...]]] = {
    "queue": ("states:DescribeExecution",),
    "stop_older": ("states:DescribeExecution", "states:StopExecution"),
}


def overlaps(workflow: Workflow, account: Account) -> Iterator[Statement]:
    """Yield what the policy for runs that overlap needs."""
    policy = workflow.overlapping
    if policy == "allow":
        return
    machine = account.arn("states", f"stateMachine:{workflow.name}")
    actions, resources = {"states:ListExecutions"}, {machine}
    if policy in _SEES:
        actions.update(_SEES[policy])
        resources.add(account.arn("states", f"execution:{workflow.name}:*"))
    yield Statement("SeeOtherRuns", frozenset(actions), frozenset(resources)).by("overlap")
    if policy == "stop_older" and leftovers(workflow.graph):
        yield from _cleaning_up(f"{workflow.name}{COMPANION}", account)


def _cleaning_up(companion: str, account: Account) -> Iterator[Statement]:
    """Yield what it takes to start a state machine and to wait for its end.

    https://docs.aws.amazon.com/step-functions/latest/dg/stepfunctions-iam.html
    """
    rule = "rule/StepFunctionsGetEventsForStepFunctionsExecutionRule"
    for sid, actions, resource in (
        (
            "StartCompanion",
            ("states:StartExecution",),
            account.arn("states", f"stateMachine:{companion}"),
        ),
        (
            "FollowCompanion",
            ("states:DescribeExecution", "states:StopExecution"),
            account.arn("states", f"execution:{companion}:*"),
        ),
        (
            "HearOfCompanionsEnd",
            ("events:DescribeRule", "events:PutRule", "events:PutTargets"),
            account.arn("events", rule),
        ),
    ):
        yield Statement(sid, frozenset(actions), frozenset([resource])).by("overlap")
