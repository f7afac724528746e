"""The rules of EventBridge and of its scheduler that a pipeline can break."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.rules import Rule

_REFUSED = "ValidationException"
_RECORDED = "issue: https://github.com/localstack/localstack/blob/main/tests/aws/services"

EVENTS: Final[Mapping[str, Rule]] = {
    "schedules of rules": Rule(
        _REFUSED,
        "Parameter ScheduleExpression is not valid.",
        f"{_RECORDED}/events/test_events_schedule.snapshot.json",
    ),
    "five targets": Rule(
        "LimitExceededException",
        "The requested resource exceeds the maximum number allowed.",
        f"{_RECORDED}/events/test_events.snapshot.json",
    ),
    "entries at most": Rule(
        _REFUSED,
        "Total size of the entries in the request is over the limit.",
        f"{_RECORDED}/events/test_events.snapshot.json; number: PutEvents in botocore's model",
    ),
    "sources of AWS": Rule(
        "NotAuthorizedForSourceException",
        "Not authorized for the source.",
        "issue: the error as many quote it who try out rules by events of their own; rule: "
        "https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html",
        200,
    ),
}
"""An error of status 200 is that of an entry."""

SCHEDULES: Final[Mapping[str, Rule]] = {
    "expressions": Rule(
        _REFUSED,
        "Invalid Schedule Expression {expression}.",
        f"{_RECORDED}/scheduler/test_scheduler.snapshot.json",
    ),
    "time zones": Rule(
        _REFUSED,
        "Invalid Schedule Expression Timezone {zone}.",
        "guide: https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html; "
        "wording assumed",
    ),
    "starts at most five minutes ago": Rule(
        _REFUSED,
        "The StartDate you specify cannot be earlier than 5 minutes ago.",
        "issue: https://github.com/getmoto/moto/pull/8172",
    ),
    "inputs of templates are JSON": Rule(
        _REFUSED,
        "The input of the target {target} must be a well-formed JSON.",
        "model: Target.Input; wording assumed",
    ),
}
