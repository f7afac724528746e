"""The moments at which a schedule fires, by the rules of EventBridge Scheduler and by Airflow's.

Where clocks go forward, EventBridge Scheduler skips a time that does not exist; where they go back,
it runs once at a time that comes twice:
https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#daylist-savings-time
Airflow's ``CronTriggerTimetable`` runs late what is skipped, and where an expression covers every
hour, it runs twice what comes twice; of others it takes the second time, which no document forbids.
``tests/airflow/test_schedules.py`` asks Airflow itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from orchestration.errors import Problem

_DAY: Final = timedelta(days=1)
_SAMPLE: Final = (date(2027, 1, 1), date(2031, 1, 1))
"""The years in which days are looked for, whenever it is asked: each weekday falls on changes."""


def times(expression: str, timezone: str, after: datetime) -> Iterator[datetime]:
    """Yield the moments after a moment at which a schedule fires, in its time zone.

    >>> from itertools import islice
    >>> found = times("30 2 * * *", "Europe/Berlin", datetime(2027, 3, 27, tzinfo=UTC))
    >>> [moment.isoformat() for moment in islice(found, 2)]
    ['2027-03-27T02:30:00+01:00', '2027-03-29T02:30:00+02:00']
    """
    zone = ZoneInfo(timezone)
    # Local time may be ahead of what is asked for where clocks go back in between.
    for naive in local_times(expression, after.astimezone(zone).replace(tzinfo=None) - _DAY):
        moment = naive.replace(tzinfo=zone)
        if not _is_skipped(moment) and moment.astimezone(UTC) > after:
            yield moment


def local_times(expression: str, after: datetime) -> Iterator[datetime]:
    """Yield the times of a clock on the wall that an expression names."""
    from croniter import croniter

    yield from croniter(expression, after).all_next(datetime)


def differences(expression: str, timezone: str) -> Iterator[Problem]:
    """Yield the first day of each kind on which Airflow starts other runs than EventBridge does."""
    try:
        zone = ZoneInfo(timezone)
        every_hour = _covers_every_hour(expression)
    except (ValueError, OSError):
        return  # Reported as an error.
    for day, forward in _changes(zone):
        if forward is every_hour:
            continue
        told = _skipped if forward else _repeated
        differs = _is_skipped if forward else _is_repeated
        moments = (naive.replace(tzinfo=zone) for naive in _on(expression, day))
        first = next((moment for moment in moments if differs(moment)), None)
        if first is not None:
            yield Problem("cron", told(first, timezone))
            return


def _on(expression: str, day: date) -> Iterator[datetime]:
    """Yield the local times of a day."""
    start = datetime(day.year, day.month, day.day)
    for naive in local_times(expression, start - timedelta(minutes=1)):
        if naive >= start + _DAY:
            return
        yield naive


def _skipped(moment: datetime, timezone: str) -> str:
    late = moment.astimezone(UTC).astimezone(moment.tzinfo)
    return (
        f"{moment:%H:%M} does not exist in {timezone} on {_day(moment)}: EventBridge "
        f"Scheduler skips it, Airflow runs at {late:%H:%M}; choose another time, or timezone: UTC"
    )


def _repeated(moment: datetime, timezone: str) -> str:
    return (
        f"{moment:%H:%M} comes twice in {timezone} on {_day(moment)}: EventBridge "
        "Scheduler runs once, Airflow twice, as the expression names every hour; choose fewer "
        "hours, or timezone: UTC"
    )


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y}"


def _changes(zone: ZoneInfo) -> Iterator[tuple[date, bool]]:
    """Yield the days of the sample on which clocks change, and whether they go forward."""
    day = _SAMPLE[0]
    while day < _SAMPLE[1]:
        ends = [datetime(d.year, d.month, d.day, tzinfo=zone) for d in (day, day + _DAY)]
        before, after = (end.utcoffset() for end in ends)
        if before is not None and after is not None and before != after:
            yield day, after > before
        day += _DAY


def _is_skipped(moment: datetime) -> bool:
    """Return whether clocks go over a local time."""
    back = moment.astimezone(UTC).astimezone(moment.tzinfo)
    return back.replace(tzinfo=None) != moment.replace(tzinfo=None)


def _is_repeated(moment: datetime) -> bool:
    """Return whether a local time comes twice."""
    return not _is_skipped(moment) and moment.utcoffset() != moment.replace(fold=1).utcoffset()


def _covers_every_hour(expression: str) -> bool:
    from croniter import croniter

    hours = croniter.expand(expression)[0][1]
    return "*" in hours or len(set(hours)) == 24
