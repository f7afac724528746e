"""The checks of requests to EventBridge and to its scheduler that moto leaves out."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable

from orchestration.checks import documented
from orchestration.checks.patterns import matches
from orchestration.local.account.protocol import Checked, JsonObject, Request
from orchestration.local.account.rules import broken
from orchestration.local.events.rules import EVENTS, SCHEDULES
from orchestration.pipeline.schedules.cron import zone_problems

_MOST_TARGETS = 5
_MOST_BYTES = 1024 * 1024
_TIME_BYTES = 14
_OLDEST_START = datetime.timedelta(minutes=5)
_PUT = ("CreateSchedule", "UpdateSchedule")
_TEMPLATED = ("events", "lambda", "states")
"""The services that take nothing but JSON, by their name in ARNs."""


class EventBridge(Checked):
    """EventBridge: moto answers what these checks let pass."""

    name = "events"

    def check(self, request: Request) -> None:
        """Raise the service's error for a request that moto would accept."""
        if request.operation == "PutEvents":
            # What is wrong with an entry is said of it, in an answer of status 200.
            _check_size(request.parameters.get("Entries", ()))
            return
        super().check(request)
        if request.operation == "PutTargets":
            _check_targets(request)

    def check_values(self, request: Request) -> None:
        """Raise EventBridge's error for a schedule that it does not take."""
        schedule = request.parameters.get("ScheduleExpression", "")
        if not matches(documented.RULE_SCHEDULE, schedule):
            raise broken(EVENTS, "schedules of rules")


class Scheduler(Checked):
    """EventBridge Scheduler: moto answers what these checks let pass."""

    name = "scheduler"

    def check_values(self, request: Request) -> None:
        """Raise the scheduler's error for a schedule that it does not take."""
        if request.operation in _PUT and "ScheduleExpression" in request.parameters:
            _check_schedule(request.parameters)


def _check_size(entries: Iterable[JsonObject]) -> None:
    """Refuse entries of more than 1 MiB together.

    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html#eb-putevent-size
    """
    size = 0
    for entry in entries:
        texts = [entry.get(name) or "" for name in ("Source", "DetailType", "Detail")]
        texts += entry.get("Resources") or ()
        size += _TIME_BYTES if "Time" in entry else 0
        size += sum(len(text.encode()) for text in texts)
    if size > _MOST_BYTES:
        raise broken(EVENTS, "entries at most")


def _check_targets(request: Request) -> None:
    from moto.events.models import events_backends

    values = request.parameters
    bus = str(values.get("EventBusName") or "default").rpartition("/")[2]
    backend = events_backends[request.account][request.region]
    rules = backend.event_buses[bus].rules if bus in backend.event_buses else {}
    rule = rules.get(values["Rule"])
    known = set() if rule is None else {target["Id"] for target in rule.targets}
    if len(known | {target["Id"] for target in values["Targets"]}) > _MOST_TARGETS:
        raise broken(EVENTS, "five targets")


def _check_schedule(values: JsonObject) -> None:
    expression = str(values["ScheduleExpression"])
    zone = str(values.get("ScheduleExpressionTimezone", "UTC"))
    if not matches(documented.SCHEDULE, expression):
        raise broken(SCHEDULES, "expressions", expression=expression)
    if any(zone_problems(zone)):
        raise broken(SCHEDULES, "time zones", zone=zone)
    start = values.get("StartDate")
    # Of schedules that run once, it is ignored.
    if isinstance(start, int | float) and not expression.startswith("at("):
        oldest = datetime.datetime.now(tz=datetime.UTC) - _OLDEST_START
        if start < oldest.timestamp():
            raise broken(SCHEDULES, "starts at most five minutes ago")
    _check_input(values.get("Target") or {})


def _check_input(target: JsonObject) -> None:
    arn = str(target.get("Arn"))
    if "Input" not in target or not arn.startswith(tuple(f"arn:aws:{s}:" for s in _TEMPLATED)):
        return
    try:
        json.loads(target["Input"])
    except ValueError as error:
        raise broken(SCHEDULES, "inputs of templates are JSON", target=arn) from error
