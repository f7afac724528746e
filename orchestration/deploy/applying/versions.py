"""Versions of state machines: what was there stays to go back to, and the oldest go.

https://docs.aws.amazon.com/step-functions/latest/dg/concepts-state-machine-version.html
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from orchestration.deploy.applying.calling import unless

KEPT: Final = 20
"""Versions of a state machine that stay; AWS keeps 1000 at the most, and deletes none itself."""


def publish(client: Any, machine_arn: str) -> str:
    """Publish what a state machine is now, unless it is a version already; return its ARN."""
    published = client.publish_state_machine_version(stateMachineArn=machine_arn)
    return str(published["stateMachineVersionArn"])


def listed(client: Any, machine_arn: str) -> list[str]:
    """Return the ARNs of a state machine's versions, the newest first."""
    found: list[str] = []
    request = {"stateMachineArn": machine_arn}
    while True:
        page = client.list_state_machine_versions(**request)
        found += [each["stateMachineVersionArn"] for each in page["stateMachineVersions"]]
        if not page.get("nextToken"):
            return found
        request["nextToken"] = page["nextToken"]


def prune(client: Any, machine_arn: str) -> None:
    """Delete all but the newest versions; what an alias routes to or an execution runs stays.

    What AWS refuses to list or delete stays, too: the deployment is done, and the next one prunes
    again.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    with suppress(BotoCoreError, ClientError):
        _prune(client, machine_arn)


def _prune(client: Any, machine_arn: str) -> None:
    for version in listed(client, machine_arn)[KEPT:]:
        running = client.list_executions(
            stateMachineArn=version, statusFilter="RUNNING", maxResults=1
        )
        if not running["executions"]:
            # An alias of somebody else routes to it, or another deployment deletes it just now.
            unless("Conflict", client.delete_state_machine_version, stateMachineVersionArn=version)
