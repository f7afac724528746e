"""The workers of Airflow: the calls of a pipeline's tasks, logs of its jobs, and leftovers."""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.cleanup import leftovers
from orchestration.deploy import companion
from orchestration.deploy.account import Account
from orchestration.deploy.identities.identity import Identity, identity
from orchestration.deploy.identities.jobs import GROUPS
from orchestration.deploy.permissions import Runs, Statement, statements
from orchestration.deploy.permissions.patterns import ANY, Known, iam, listings, pattern
from orchestration.deploy.permissions.requests import calls
from orchestration.graph import Workflow


def airflow(workflow: Workflow, account: Account, runs: Runs) -> Identity:
    """Return the identity of the connection that a pipeline's tasks use."""
    needed = statements(workflow, account, runs)
    for parameters in runs:
        known = Known(parameters=parameters, listings=listings(workflow.graph))
        for step, operation, inside in calls(workflow.graph, known):
            if operation.service == "sagemaker" and operation.name in GROUPS:
                group, field, following = GROUPS[operation.name]
                stream = iam(pattern(operation.request[field], inside) + following + ANY)
                needed += (each.by(step) for each in _logs(account, group, stream))
    stopped = companion.stopping(leftovers(workflow.graph), account)
    needed += (each.by("the end of a run") for each in stopped)
    return identity("airflow", "the connection of Airflow's tasks", needed)


def _logs(account: Account, group: str, stream: str) -> Iterator[Statement]:
    """Yield what showing the end of a failed job's log needs."""
    arn = account.arn("logs", f"log-group:/aws/sagemaker/{group}")
    yield Statement(
        "FindLogs", frozenset(["logs:DescribeLogStreams"]), frozenset([arn, f"{arn}:*"])
    )
    streams = frozenset([f"{arn}:log-stream:{stream}"])
    yield Statement("ReadLogs", frozenset(["logs:GetLogEvents"]), streams)
