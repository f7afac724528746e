"""Schedules of EventBridge Scheduler, which start what they name while time is moved.

moto 5.2.5 keeps schedules, and starts nothing. Time passes here by request only, so that a test
says when a week is over. `tests/local/events/test_schedules.py` fails without this module.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Iterator
from itertools import takewhile
from typing import Any, Final

from orchestration.errors import LocalError
from orchestration.local.account.protocol import ACCOUNT_ID
from orchestration.local.engine.deliveries import start
from orchestration.pipeline.schedules.firing import times

_UNITS: Final = {"minute": 60, "hour": 3600, "day": 86400}
_MOST: Final = 1000


class Calendar:
    """The time of the schedules of one account."""

    def __init__(self) -> None:
        self._now = datetime.datetime.now(tz=datetime.UTC)

    def move(self, seconds: float, region: str) -> list[str]:
        """Let time pass; returns what was started, as ``schedule at time``, in order."""
        end = self._now + datetime.timedelta(seconds=seconds)
        due = [
            (moment, schedule)
            for schedule in _schedules(region)
            for moment in _moments(schedule, self._now, end)
        ]
        due.sort(key=lambda each: (each[0], each[1].name))
        if len(due) > _MOST:
            raise LocalError(f"{len(due)} runs would start; move time by less (at most {_MOST})")
        self._now = end
        for moment, schedule in due:
            _start(schedule, moment)
        return [f"{schedule.name} at {_written(moment)}" for moment, schedule in due]


def _schedules(region: str) -> Iterator[Any]:
    models = sys.modules.get("moto.scheduler.models")
    if models is None:
        # Loaded with the first request, so there is no schedule.
        return
    for group in models.scheduler_backends[ACCOUNT_ID][region].schedule_groups.values():
        for schedule in group.schedules.values():
            if schedule.state == "ENABLED" and ":stateMachine:" in schedule.target["Arn"]:
                yield schedule


def _moments(
    schedule: Any, begin: datetime.datetime, end: datetime.datetime
) -> Iterator[datetime.datetime]:
    expression = schedule.schedule_expression
    if match := re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression):
        step = datetime.timedelta(seconds=int(match[1]) * _UNITS[match[2]])
        made = datetime.datetime.fromtimestamp(schedule.creation_date, tz=datetime.UTC)
        moment = made + step * max(1, (begin - made) // step + 1)
        while moment <= end:
            yield moment
            moment += step
    elif match := re.fullmatch(r"cron\((.*) \*\)", expression):
        zone = schedule.schedule_expression_timezone
        for moment in takewhile(lambda at: at <= end, times(_five(match[1]), zone, begin)):
            yield moment.astimezone(datetime.UTC)


def _five(fields: str) -> str:
    """Return the five fields of cron; EventBridge has ``?`` for a day that does not matter."""
    return fields.replace("?", "*")


def _start(schedule: Any, moment: datetime.datetime) -> None:
    template = str(schedule.target.get("Input") or "{}")
    message = template.replace("<aws.scheduler.scheduled-time>", _written(moment))
    start(schedule.target["Arn"], message)


def _written(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
