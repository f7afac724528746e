"""Requests to EventBridge and its scheduler that break their rules, each of them once."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from tests.local.conftest import ROLE

_TOPIC = "arn:aws:sns:us-east-1:123456789012:topic"
_MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:nightly"


def _rule(aws: EmbeddedAws, **more: Any) -> str:
    name = f"rule-{uuid.uuid4().hex[:8]}"
    asked = more or {"EventPattern": json.dumps({"source": ["my.orders"]})}
    aws.client("events").put_rule(Name=name, **asked)
    return name


def _targets(first: int, last: int) -> list[dict[str, str]]:
    return [{"Id": str(number), "Arn": f"{_TOPIC}{number}"} for number in range(first, last)]


def _sixth_alone(aws: EmbeddedAws) -> None:
    rule, events = _rule(aws), aws.client("events")
    events.put_targets(Rule=rule, Targets=_targets(0, 5))
    events.put_targets(Rule=rule, Targets=_targets(4, 5))
    events.put_targets(Rule=rule, Targets=_targets(5, 6))


def _event(aws: EmbeddedAws, **more: Any) -> None:
    """Send an event between two others, and raise the error of the one that is refused."""
    entry = {"Source": "my.orders", "DetailType": "Order", "Detail": "{}"}
    answer = aws.client("events").put_events(Entries=[entry, {**entry, **more}, entry])
    first, refused, last = answer["Entries"]
    assert answer["FailedEntryCount"] == 1
    assert {"EventId"} == first.keys() == last.keys()
    error = {"Code": refused["ErrorCode"], "Message": refused["ErrorMessage"]}
    status = answer["ResponseMetadata"]
    raise ClientError({"Error": error, "ResponseMetadata": status}, "PutEvents")


def schedule(expression: str, **more: Any) -> Callable[[EmbeddedAws], None]:
    name = f"schedule-{uuid.uuid4().hex[:8]}"
    return lambda aws: aws.client("scheduler").create_schedule(
        **{
            "Name": name,
            "ScheduleExpression": expression,
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "Target": {"Arn": _MACHINE, "RoleArn": ROLE, "Input": "{}"},
            **more,
        }
    )


def _changed(aws: EmbeddedAws) -> None:
    asked: dict[str, Any] = {
        "Name": f"schedule-{uuid.uuid4().hex[:8]}",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {"Arn": _MACHINE, "RoleArn": ROLE},
    }
    scheduler = aws.client("scheduler")
    scheduler.create_schedule(ScheduleExpression="rate(1 hours)", **asked)
    scheduler.update_schedule(ScheduleExpression="rate(1 weeks)", **asked)


_YESTERDAY = datetime.now(tz=UTC) - timedelta(days=1)

EVENTS: dict[str, Callable[[EmbeddedAws], Any]] = {
    "schedules of rules": lambda aws: _rule(aws, ScheduleExpression="rate(1 hours)"),
    "five targets": lambda aws: aws.client("events").put_targets(
        Rule=_rule(aws), Targets=_targets(0, 6)
    ),
    "entries at most": lambda aws: _event(aws, Detail=json.dumps({"text": "x" * 1024 * 1024})),
    "sources of AWS": lambda aws: _event(aws, Source="aws.s3"),
}
SCHEDULES: dict[str, Callable[[EmbeddedAws], Any]] = {
    "expressions": schedule("cron(0 6 * * MON *)"),
    "time zones": schedule("rate(1 hour)", ScheduleExpressionTimezone="Europe/Bonn"),
    "starts at most five minutes ago": schedule("rate(1 hour)", StartDate=_YESTERDAY),
    "inputs of templates are JSON": schedule(
        "rate(1 hour)", Target={"Arn": _MACHINE, "RoleArn": ROLE, "Input": "now"}
    ),
}
ALSO: dict[str, tuple[str, Callable[[EmbeddedAws], Any]]] = {
    "a sixth target": ("five targets", _sixth_alone),
}
ALSO_SCHEDULES: dict[str, tuple[str, Callable[[EmbeddedAws], Any]]] = {
    "a schedule that is changed": ("expressions", _changed),
}
