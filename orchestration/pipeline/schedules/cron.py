"""Cron expressions that mean the same to Airflow and to EventBridge Scheduler.

Five fields, read as croniter reads them (Airflow does). EventBridge Scheduler takes six, counts
weekdays from 1 (Sunday) and wants ``?`` for one of the two day fields; what has no equal there is
refused. https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise, takewhile
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from orchestration.errors import Problem, meant
from orchestration.phrases import counted

_FIELDS = ("minute", "hour", "day of month", "month", "day of week")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def problems(expression: str) -> Iterator[Problem]:
    """Yield the errors of a cron expression."""
    yield from (Problem("cron", message) for message in _wrong(expression))


def zone_problems(timezone: str) -> Iterator[Problem]:
    """Yield the error of a time zone that is not known."""
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        yield Problem(
            "timezone",
            f"expected an IANA time zone, such as Europe/Berlin or UTC, got {timezone!r}"
            f"{meant(timezone, available_timezones())}",
        )


def _wrong(expression: str) -> Iterator[str]:
    from croniter import CroniterBadDateError, croniter

    fields = expression.split()
    if len(fields) != 5:
        given = f"{expression!r} has {counted(len(fields), 'field')}"
        yield f"{given}; write five: {', '.join(_FIELDS)}"
        return
    signs = [_sign(name, value) for name, value in zip(_FIELDS, fields, strict=True)]
    if any(signs):
        yield from (sign for sign in signs if sign)
        return
    if not croniter.is_valid(expression):
        yield f"expected a cron expression ({', '.join(_FIELDS)}), got {expression!r}"
        return
    _, _, day, _, weekday = _expanded(expression)
    if day is not None and weekday is not None:
        yield (
            "day of month and day of week are both given: cron runs when either holds, EventBridge "
            "can't; use one of them, or two pipelines"
        )
        return
    try:
        croniter(expression, datetime(2024, 1, 1, tzinfo=UTC)).get_next()
    except CroniterBadDateError:
        yield f"{expression!r} names a day that no month has"


def _sign(name: str, value: str) -> str:
    if re.search(r"[#LWRH?@]", re.sub(r"[A-Z]{3}", "", value.upper())):
        return f"the {name} {value!r} uses a sign that cron and EventBridge read differently"
    return ""


def eventbridge(expression: str) -> str:
    """The expression for EventBridge Scheduler.

    >>> eventbridge("30 6 * * 1-5")
    'cron(30 6 ? * MON-FRI *)'
    >>> eventbridge("0 0 1 */3 *")
    'cron(0 0 1 1/3 ? *)'
    """
    minute, hour, day, month, weekday = _expanded(expression)
    days = _numbers(day, 31) if weekday is None else "?"
    weekdays = "?" if weekday is None else _spans(weekday, _WEEKDAYS)
    fields = [_numbers(minute, 59), _numbers(hour, 23), days, _numbers(month, 12), weekdays, "*"]
    return f"cron({' '.join(fields)})"


def runs_per_month(expression: str) -> float:
    """Return how often an expression fires in a month, over four years with their leap day.

    >>> round(runs_per_month("0 6 * * MON"), 2), runs_per_month("0 0 1 * *")
    (4.35, 1.0)
    """
    from croniter import croniter

    minute, hour, *_ = _expanded(expression)
    _, _, *days = expression.split()
    each = (60 if minute is None else len(minute)) * (24 if hour is None else len(hour))
    start, end = datetime(2024, 12, 31, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC)
    dates = croniter(f"0 0 {' '.join(days)}", start).all_next(datetime)
    return each * sum(1 for _ in takewhile(lambda date: date < end, dates)) / 48


def _expanded(expression: str) -> list[list[int] | None]:
    """Each field as the values it stands for, ``None`` for all of them."""
    from croniter import croniter

    fields = croniter.expand(expression)[0]
    return [None if "*" in field else sorted({int(v) for v in field}) for field in fields]


def _numbers(values: Sequence[int] | None, last: int) -> str:
    if values is None:
        return "*"
    steps = {b - a for a, b in pairwise(values)}
    if len(values) > 2 and len(steps) == 1:
        [step] = steps
        # EventBridge goes on with the step to the end of the field.
        if step > 1 and values[-1] + step > last:
            return f"{values[0]}/{step}"
    return _spans(values, [str(number) for number in range(last + 1)])


def _spans(values: Sequence[int], names: Sequence[str]) -> str:
    """Values by their names, three and more in a row as one span."""
    rows: list[list[int]] = []
    for value in values:
        if rows and value == rows[-1][-1] + 1:
            rows[-1].append(value)
        else:
            rows.append([value])
    texts = [
        [f"{names[row[0]]}-{names[row[-1]]}"] if len(row) > 2 else [names[v] for v in row]
        for row in rows
    ]
    return ",".join(text for texts_of_row in texts for text in texts_of_row)
