"""Changes of what watches a state machine."""

from __future__ import annotations

from typing import Any

from orchestration.deploy.applying.calling import unless
from orchestration.deploy.monitoring.alarms import Alarm
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


def put_alarm(client: Any, change: Change, alarm: Alarm) -> None:
    """Create, update or delete an alarm."""
    if change.after is None:
        client.delete_alarms(AlarmNames=[alarm.name])
        return
    request = alarm.request()
    client.put_metric_alarm(**request)
    # An alarm that is there keeps its tags, whatever the request says.
    if isinstance(change.before, Alarm) and change.before.tags != alarm.tags:
        client.tag_resource(ResourceARN=alarm.arn, Tags=request["Tags"])
