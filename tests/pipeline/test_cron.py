"""Cron means the same to Airflow and to EventBridge Scheduler, or is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice

import pytest
from croniter import croniter
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from orchestration.pipeline.schedules import cron

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
START = datetime(2024, 1, 31, 22, 58, tzinfo=UTC)


def _values(field: str, low: int, high: int, names: list[str]) -> set[int]:
    """A field of EventBridge Scheduler, by the grammar of its documentation alone."""
    found: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")

        def number(text: str) -> int:
            value = names.index(text) + 1 if text in names else int(text)
            assert low <= value <= high, f"{text} is out of range"
            return value

        start, end = (low, high) if first in "*?" else (number(first), number(first))
        end = number(last) if dash else high if slash else end
        assert start <= end, "EventBridge documents no range that goes backwards"
        found |= set(range(start, end + 1, int(step or 1)))
    return found


def eventbridge_times(expression: str, start: datetime) -> Iterator[datetime]:
    """When EventBridge Scheduler would fire.

    https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#cron-based
    """
    assert expression.startswith("cron(")
    minute, hour, day, month, weekday, year = expression[5:-1].split()
    assert [day, weekday].count("?") == 1
    assert year == "*"
    minutes, hours = _values(minute, 0, 59, []), _values(hour, 0, 23, [])
    days, months = _values(day, 1, 31, []), _values(month, 1, 12, MONTHS)
    weekdays = _values(weekday, 1, 7, DAYS)
    today: date = start.date()
    while today.year < start.year + 9:
        if today.day in days and today.month in months and today.isoweekday() % 7 + 1 in weekdays:
            for h in sorted(hours):
                for m in sorted(minutes):
                    moment = datetime(today.year, today.month, today.day, h, m, tzinfo=UTC)
                    if moment > start:
                        yield moment
        today += timedelta(days=1)


def _field(low: int, high: int, names: list[str], first: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    value = number.map(str)
    if names:
        value |= number.map(lambda n: names[(n - first) % len(names)])
    step = st.integers(1, high).map(lambda n: f"/{n}")
    span = st.tuples(value, value).map("-".join)
    part = st.one_of(
        value, span, st.tuples(st.just("*"), step).map("".join), st.tuples(span, step).map("".join)
    )
    return st.just("*") | st.lists(part, min_size=1, max_size=3).map(",".join)


FIELDS = (
    _field(0, 59, [], 0),
    _field(0, 23, [], 0),
    _field(1, 31, [], 0),
    _field(1, 12, MONTHS, 1),
    _field(0, 7, DAYS, 0),
)
EXPRESSIONS = st.tuples(*FIELDS).map(" ".join) | st.tuples(
    *FIELDS[:2], st.just("*"), *FIELDS[3:]
).map(" ".join)


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS)
def test_both_fire_at_the_same_moments(expression: str) -> None:
    assume(not list(cron.problems(expression)))
    airflow = croniter(expression, START)
    ours = list(islice(eventbridge_times(cron.eventbridge(expression), START), 5))
    assert ours == [airflow.get_next(datetime) for _ in ours]
    assert len(ours) == 5 or " 29 " in f" {expression} "


@pytest.mark.parametrize(
    ("expression", "theirs"),
    [
        ("* * * * *", "cron(* * * * ? *)"),
        ("*/15 9-17 * * MON-FRI", "cron(0/15 9-17 ? * MON-FRI *)"),
        ("0 6 * * 0", "cron(0 6 ? * SUN *)"),
        ("0 6 * * 7", "cron(0 6 ? * SUN *)"),
        ("0 6 * * 5-1", "cron(0 6 ? * SUN,MON,FRI,SAT *)"),
        ("0 6 * * */2", "cron(0 6 ? * SUN,TUE,THU,SAT *)"),
        ("0 22-2 * * *", "cron(0 0-2,22,23 * * ? *)"),
        ("0 0 1 nov-feb *", "cron(0 0 1 1,2,11,12 ? *)"),
        ("5/20 0 1,15 * *", "cron(5/20 0 1,15 * ? *)"),
        ("00 06 * * *", "cron(0 6 * * ? *)"),
    ],
)
def test_conversion(expression: str, theirs: str) -> None:
    assert not list(cron.problems(expression))
    assert cron.eventbridge(expression) == theirs


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("0 6 * *", "has 4 fields; write five"),
        ("@daily", "has 1 field; write five"),
        ("0 6 1 * MON", "cron runs when either holds"),
        ("0 6 L * *", "the day of month 'L' uses a sign"),
        ("0 6 * * MON#1", "the day of week 'MON#1' uses a sign"),
        ("0 6 * * L5", "uses a sign"),
        ("0 6 ? * MON", "uses a sign"),
        ("H 6 * * *", "uses a sign"),
        ("0 6 15W * *", "uses a sign"),
        ("60 6 * * *", "expected a cron expression"),
        ("0 6 * * FOO", "expected a cron expression"),
        ("0 6 30 2 *", "names a day that no month has"),
    ],
)
def test_what_has_no_equal_is_refused(expression: str, message: str) -> None:
    [problem] = cron.problems(expression)
    assert problem.path == "cron"
    assert message in problem.message
