"""Schedules of EventBridge Scheduler and of scaling, which do what they say while time is moved.

moto 5.2.5 keeps schedules, and starts nothing. Time passes here by request only, so that a test
says when a week is over. `tests/local/events/test_schedules.py` fails without this module.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import takewhile
from typing import Any, Final
from zoneinfo import ZoneInfo

from orchestration.errors import LocalError
from orchestration.graph import ScheduleSpec
from orchestration.local.account.protocol import ACCOUNT_ID, Operation
from orchestration.local.engine.deliveries import start
from orchestration.local.events import scaling
from orchestration.pipeline.schedules.firing import fires
from orchestration.pipeline.schedules.rate import period

_MOST: Final = 1000


class Calendar:
    """The time of the schedules of one account."""

    def __init__(self) -> None:
        self._now = datetime.datetime.now(tz=datetime.UTC)

    def move(self, seconds: float, region: str, sagemaker: Mapping[str, Operation]) -> list[str]:
        """Let time pass; returns what was started, as ``schedule at time``, in order."""
        begin, end = self._now, self._now + datetime.timedelta(seconds=seconds)
        due = [
            (moment, str(schedule.name), partial(_start, schedule, moment))
            for schedule in _schedules(region)
            for moment in _moments(
                schedule.schedule_expression,
                schedule.schedule_expression_timezone,
                schedule.creation_date,
                (begin, end),
                (schedule.start_date, schedule.end_date),
            )
        ]
        due += [
            (moment, str(action.scheduled_action_name), partial(scaling.apply, action, sagemaker))
            for action in scaling.actions(region)
            for moment in _moments(
                action.schedule, action.timezone or "UTC", action.creation_time, (begin, end)
            )
        ]
        due.sort(key=lambda each: each[:2])
        if len(due) > _MOST:
            raise LocalError(f"{len(due)} runs would start; move time by less (at most {_MOST})")
        self._now = end
        for _, _, take_effect in due:
            take_effect()
        return [f"{name} at {_written(moment)}" for moment, name, _ in due]


def _schedules(region: str) -> Iterator[Any]:
    models = sys.modules.get("moto.scheduler.models")
    if models is None:
        # Loaded with the first request, so there is no schedule.
        return
    # Copies: another thread may create one meanwhile.
    for group in [*models.scheduler_backends[ACCOUNT_ID][region].schedule_groups.values()]:
        for schedule in [*group.schedules.values()]:
            if schedule.state == "ENABLED" and ":stateMachine:" in schedule.target["Arn"]:
                yield schedule


def _moments(
    expression: str,
    zone: str,
    created: float,
    within: tuple[datetime.datetime, datetime.datetime],
    bounds: tuple[float | None, float | None] = (None, None),
) -> Iterator[datetime.datetime]:
    """Yield when a schedule fires: within a flexible window, at its beginning."""
    begin, end = within
    first, last = (_at(stamp) for stamp in bounds)
    spec: ScheduleSpec | None = None
    if match := re.fullmatch(r"rate\((\d+ \w+)\)", expression):
        # Without a start, it counts from when it was made.
        first = first or _at(created + (period(match[1]) or datetime.timedelta()).total_seconds())
        spec = ScheduleSpec(rate=match[1], timezone=zone, start=first, end=last)
    elif match := re.fullmatch(r"cron\((.*) \*\)", expression):
        spec = ScheduleSpec(cron=_five(match[1]), timezone=zone, start=first, end=last)
    elif match := re.fullmatch(r"at\((.*)\)", expression):
        local = datetime.datetime.fromisoformat(match[1]).replace(tzinfo=ZoneInfo(zone))
        spec = ScheduleSpec(at=local.isoformat(), timezone=zone)
    if spec is not None:
        for moment in takewhile(lambda at: at <= end, fires(spec, begin)):
            yield moment.astimezone(datetime.UTC)


def _at(stamp: float | None) -> str | None:
    if stamp is None:
        return None
    return datetime.datetime.fromtimestamp(stamp, tz=datetime.UTC).isoformat()


def _five(fields: str) -> str:
    """Return the five fields of cron; EventBridge has ``?`` for a day that does not matter."""
    return fields.replace("?", "*")


def _start(schedule: Any, moment: datetime.datetime) -> None:
    template = str(schedule.target.get("Input") or "{}")
    message = template.replace("<aws.scheduler.scheduled-time>", _written(moment))
    start(schedule.target, message, "scheduler.amazonaws.com")


def _written(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
