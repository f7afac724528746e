"""Mistakes in schedules that show before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from orchestration.errors import Problem
from orchestration.graph import ScheduleSpec
from orchestration.pipeline.schedules import cron
from orchestration.pipeline.schedules.firing import fires, is_skipped
from orchestration.pipeline.schedules.model import MOMENT, Schedule, in_zone
from orchestration.pipeline.schedules.rate import period

_KINDS = ("cron", "rate", "at")


def problems(schedule: Schedule) -> Iterator[Problem]:
    """Yield what is wrong with a schedule, each with its field."""
    given = [name for name in _KINDS if getattr(schedule, name) is not None]
    if len(given) != 1:
        text = f"got {' and '.join(given)}" if given else "none is there"
        yield Problem(
            given[-1] if given else "",
            f"write one of cron: 0 6 * * MON, rate: 6 hours, at: {MOMENT}; {text}",
        )
    if schedule.cron is not None:
        yield from cron.problems(schedule.cron)
    if schedule.rate is not None:
        yield from _of_rate(schedule.rate, schedule.start)
    if schedule.catchup and schedule.start is None:
        text = f"catching up needs a first time; write start: {MOMENT}, or remove it"
        yield Problem("catchup", text)
    unknown = list(cron.zone_problems(schedule.timezone))
    yield from unknown
    if not unknown:
        yield from _of_moments(schedule)


def over(schedule: ScheduleSpec, now: datetime) -> Iterator[Problem]:
    """Yield the problem of a schedule that starts no more runs."""
    if next(fires(schedule, now), None) is None:
        field = "at" if schedule.at is not None else "end"
        text = f"{getattr(schedule, field)} is over, so it starts no run any more"
        yield Problem(f"schedule.{field}", f"{text}; choose a later time, or remove the schedule")


def _of_rate(rate: str, start: str | None) -> Iterator[Problem]:
    time = period(rate)
    if time is None:
        yield Problem("rate", f"expected a number and minutes, hours or days, got {rate!r}")
    elif not time:
        yield Problem("rate", f"{rate!r} is no time; the shortest is 1 minute")
    if start is None:
        yield Problem(
            "start",
            f"a rate counts from its first run; write when that is, start: {MOMENT}: without, "
            "EventBridge would count from the deployment, and Airflow from another moment",
        )


def _of_moments(schedule: Schedule) -> Iterator[Problem]:
    moments: dict[str, datetime] = {}
    for field in ("at", "start", "end"):
        text = getattr(schedule, field)
        if text is None:
            continue
        moments[field] = in_zone(text, schedule.timezone)
        if is_skipped(moments[field]):
            yield Problem(
                field,
                f"{text} does not exist in {schedule.timezone}, where clocks go over it; choose "
                "another time",
            )
    if "at" in moments:
        for field in ("start", "end"):
            if field in moments:
                yield Problem(field, "a schedule that runs once has no other times; remove it")
    elif {"start", "end"} <= moments.keys() and _stamp(moments, "end") <= _stamp(moments, "start"):
        text = f"{schedule.end} is not after start, {schedule.start}, so it would never run"
        yield Problem("end", f"{text}; choose a later end")


def _stamp(moments: dict[str, datetime], field: str) -> float:
    """Return a moment as a number: Python compares times of one zone by their clocks alone."""
    return moments[field].timestamp()
