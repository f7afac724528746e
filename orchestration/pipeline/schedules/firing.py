"""The moments at which a schedule fires, by the rules of EventBridge Scheduler and by Airflow's.

Where clocks go forward, EventBridge Scheduler skips a time that does not exist; where they go back,
it runs once at a time that comes twice:
https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#daylist-savings-time
Airflow's ``CronTriggerTimetable`` runs late what is skipped, and where an expression covers every
hour, it runs twice what comes twice; of others it takes the second time, which no document forbids.
``tests/airflow/test_schedules.py`` asks Airflow itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile
from typing import Final
from zoneinfo import ZoneInfo

from orchestration.errors import Problem
from orchestration.graph import ScheduleSpec
from orchestration.pipeline.schedules import cron, rate
from orchestration.pipeline.schedules.rate import period

_DAY: Final = timedelta(days=1)
_MONTH: Final = timedelta(days=365.25) / 12
_INSTANT: Final = timedelta(microseconds=1)
_LOOKS_BACK_DAYS: Final = (1 / 24, 1, 32, 367, 8 * 366 + 1)
"""The last is more than the time between two leap days."""
_SAMPLE: Final = (date(2027, 1, 1), date(2031, 1, 1))
"""The years in which days are looked for, whenever it is asked: each weekday falls on changes."""


def fires(schedule: ScheduleSpec, after: datetime) -> Iterator[datetime]:
    """Yield the moments after a moment at which a schedule fires, in its time zone.

    >>> from itertools import islice
    >>> sunday = datetime(2027, 3, 27, tzinfo=UTC)
    >>> found = fires(ScheduleSpec(cron="30 2 * * *", timezone="Europe/Berlin"), sunday)
    >>> [moment.isoformat() for moment in islice(found, 2)]
    ['2027-03-27T02:30:00+01:00', '2027-03-29T02:30:00+02:00']
    """
    zone = ZoneInfo(schedule.timezone)
    start, end = _moment(schedule.start), _moment(schedule.end)
    if start is not None:
        after = max(after.astimezone(UTC), start - _INSTANT)
    for moment in _unbounded(schedule, zone, after, start):
        if end is not None and moment >= end:
            return
        yield moment.astimezone(zone)


def last(schedule: ScheduleSpec, until: datetime) -> datetime | None:
    """Return the last moment at which a schedule fires until a moment, that one included."""
    for days in _LOOKS_BACK_DAYS:
        begin = until - timedelta(days=days)
        found = takewhile(lambda moment: moment <= until, fires(schedule, begin))
        if (moment := max(found, default=None)) is not None:
            return moment
    return None


def runs_per_month(schedule: ScheduleSpec) -> float:
    """Return how often a schedule fires in a month, bounds aside; one that runs once counts as 1.

    >>> runs_per_month(ScheduleSpec(rate="12 hours", timezone="UTC"))
    60.875
    """
    if schedule.cron is not None:
        return cron.runs_per_month(schedule.cron)
    step = period(schedule.rate or "")
    return 1.0 if step is None else _MONTH / step


def expression(schedule: ScheduleSpec) -> str:
    """Return the expression of a schedule for EventBridge Scheduler."""
    if schedule.cron is not None:
        return cron.eventbridge(schedule.cron)
    if schedule.rate is not None:
        return rate.eventbridge(schedule.rate)
    [moment] = fires(schedule, datetime.min.replace(tzinfo=UTC))
    return f"at({moment:%Y-%m-%dT%H:%M:%S})"


def written(schedule: ScheduleSpec) -> str:
    """Return the words for when a schedule runs, as a person wrote them, but for their bounds."""
    if schedule.at is not None:
        return f"once at {schedule.at}"
    return schedule.cron or f"every {schedule.rate} from {schedule.start}"


def _unbounded(
    schedule: ScheduleSpec, zone: ZoneInfo, after: datetime, start: datetime | None
) -> Iterator[datetime]:
    """Yield the moments after a moment, in UTC, whenever the schedule ends."""
    if schedule.cron is not None:
        yield from _of_cron(schedule.cron, zone, after)
    elif (once := _moment(schedule.at)) is not None:
        if once > after:
            yield once
    elif start is not None and (step := period(schedule.rate or "")):
        moment = start + step * max(0, (after - start) // step + 1)
        while True:
            yield moment
            moment += step


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _of_cron(expression: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    # Local time may be ahead of what is asked for where clocks go back in between.
    for naive in local_times(expression, after.astimezone(zone).replace(tzinfo=None) - _DAY):
        moment = naive.replace(tzinfo=zone)
        if not is_skipped(moment) and (universal := moment.astimezone(UTC)) > after:
            yield universal


def local_times(expression: str, after: datetime) -> Iterator[datetime]:
    """Yield the times of a clock on the wall that an expression names."""
    from croniter import croniter

    yield from croniter(expression, after).all_next(datetime)


def differences(schedule: ScheduleSpec) -> Iterator[Problem]:
    """Yield the first day of each kind on which Airflow starts other runs than EventBridge does."""
    expression, timezone = schedule.cron, schedule.timezone
    if expression is None or not schedule.is_plain_cron:
        return
    zone = ZoneInfo(timezone)
    every_hour = _covers_every_hour(expression)
    told: set[Callable[[datetime, str], str]] = set()
    for day, forward in _changes(zone):
        if forward and every_hour:
            continue
        tell = _skipped if forward else _repeated if every_hour else _second
        differs = is_skipped if forward else _is_repeated
        moments = (naive.replace(tzinfo=zone) for naive in _on(expression, day))
        first = next((moment for moment in moments if differs(moment)), None)
        if first is not None and tell not in told:
            told.add(tell)
            yield Problem("cron", tell(first, timezone))


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


def _second(moment: datetime, timezone: str) -> str:
    late = moment.replace(fold=1).astimezone(UTC)
    return (
        f"{moment:%H:%M} comes twice in {timezone} on {_day(moment)}: Airflow runs at the second, "
        f"{late:%H:%M} UTC, and no document says which EventBridge Scheduler takes; choose another "
        "time, or timezone: UTC"
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


def is_skipped(moment: datetime) -> bool:
    """Return whether clocks go over a local time."""
    back = moment.astimezone(UTC).astimezone(moment.tzinfo)
    return back.replace(tzinfo=None) != moment.replace(tzinfo=None)


def _is_repeated(moment: datetime) -> bool:
    """Return whether a local time comes twice."""
    return not is_skipped(moment) and moment.utcoffset() != moment.replace(fold=1).utcoffset()


def _covers_every_hour(expression: str) -> bool:
    from croniter import croniter

    hours = croniter.expand(expression)[0][1]
    return "*" in hours or len(set(hours)) == 24
