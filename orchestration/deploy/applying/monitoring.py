"""Changes of what watches a state machine."""

from __future__ import annotations

from typing import Any

from orchestration.deploy.applying.calling import unless
from orchestration.deploy.monitoring.logs import LogGroup
from orchestration.deploy.resources import Change


def put_log_group(client: Any, change: Change, group: LogGroup) -> None:
    """Create, update or delete a log group."""
    if change.after is None:
        unless("ResourceNotFound", client.delete_log_group, logGroupName=group.name)
        return
    before, tags = change.before, dict(group.tags)
    if before is None and not unless(
        "ResourceAlreadyExists", client.create_log_group, logGroupName=group.name, tags=tags
    ):
        client.tag_resource(resourceArn=group.arn, tags=tags)
    if isinstance(before, LogGroup) and before.tags != group.tags:
        client.tag_resource(resourceArn=group.arn, tags=tags)
    if isinstance(before, LogGroup) and before.retention_days == group.retention_days:
        return
    if group.retention_days is None:
        client.delete_retention_policy(logGroupName=group.name)
    else:
        client.put_retention_policy(logGroupName=group.name, retentionInDays=group.retention_days)
