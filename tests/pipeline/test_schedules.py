"""Schedules fire when EventBridge Scheduler documents it, and say where Airflow does not."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from itertools import islice
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestration import Pipeline, PipelineError
from orchestration.checks.documented import SCHEDULE
from orchestration.checks.patterns import matches
from orchestration.graph import ScheduleSpec
from orchestration.pipeline import Schedule
from orchestration.pipeline.schedules import checking, cron
from orchestration.pipeline.schedules.firing import (
    differences,
    expression,
    fires,
    last,
    runs_per_month,
)
from tests.schedule_rows import FIRES, REFUSED, after, moments, named

RATES = {
    "every 6 hours over a change of the clock": (
        Schedule(rate="6 hours", start="2027-03-27T19:00", timezone="Europe/Berlin"),
        "rate(6 hours)",
        ["2027-03-27T19:00+01:00", "2027-03-28T01:00+01:00", "2027-03-28T08:00+02:00"],
    ),
    "a day has 24 hours": (
        Schedule(rate="1 days", start="2027-10-30T12:00", timezone="Europe/Berlin"),
        "rate(1 day)",
        ["2027-10-30T12:00+02:00", "2027-10-31T11:00+01:00", "2027-11-01T11:00+01:00"],
    ),
    "until its end, which is none": (
        Schedule(rate="90 minutes", start="2027-01-01", end="2027-01-01T03:00"),
        "rate(90 minutes)",
        ["2027-01-01T00:00+00:00", "2027-01-01T01:30+00:00"],
    ),
    "once, as far as an offset says": (
        Schedule(at="2027-03-01T06:00+01:00", timezone="America/New_York"),
        "at(2027-03-01T00:00:00)",
        ["2027-03-01T00:00-05:00"],
    ),
    "cron between two moments, the first included": (
        Schedule(cron="0 6 * * *", start="2027-02-01T06:00", end="2027-02-03T06:00"),
        "cron(0 6 * * ? *)",
        ["2027-02-01T06:00+00:00", "2027-02-02T06:00+00:00"],
    ),
}


def of(row: dict[str, Any]) -> ScheduleSpec:
    return ScheduleSpec(cron=row["cron"], timezone=row["timezone"])


def berlin(cron: str) -> ScheduleSpec:
    return ScheduleSpec(cron=cron, timezone="Europe/Berlin")


@pytest.mark.parametrize("row", FIRES, ids=named)
def test_the_next_moments_are_those_that_are_documented(row: dict[str, Any]) -> None:
    assert not list(cron.problems(row["cron"]))
    found = islice(fires(of(row), after(row)), len(row["next"]))
    assert [moment.isoformat(timespec="minutes") for moment in found] == row["next"]
    found = islice(fires(of(row), moments(row)[3]), 3)
    assert [moment.astimezone(UTC) for moment in found] == moments(row)[4:7]


@pytest.mark.parametrize("row", REFUSED, ids=named)
def test_what_both_do_not_read_alike_is_refused(row: dict[str, str]) -> None:
    assert list(cron.problems(row["cron"]))


@pytest.mark.parametrize("row", FIRES, ids=named)
def test_a_difference_is_told(row: dict[str, Any]) -> None:
    told = [problem.message for problem in differences(of(row))]
    words = {"skips": "does not exist", "repeats": "Airflow twice", "second": "at the second"}
    if "airflow" in row:
        assert any(words[row["airflow"]] in each for each in told)
    elif row["timezone"] == "UTC":
        assert told == []


def test_the_words_name_the_day_and_both_ways() -> None:
    skipped, second = differences(berlin("30 2 * * *"))
    assert skipped.message == (
        "02:30 does not exist in Europe/Berlin on 28 March 2027: EventBridge Scheduler skips it, "
        "Airflow runs at 03:30; choose another time, or timezone: UTC"
    )
    assert second.message == (
        "02:30 comes twice in Europe/Berlin on 31 October 2027: Airflow runs at the second, "
        "01:30 UTC, and no document says which EventBridge Scheduler takes; choose another time, "
        "or timezone: UTC"
    )
    [repeated] = differences(berlin("0 * * * *"))
    assert "02:00 comes twice in Europe/Berlin on 31 October 2027" in repeated.message
    assert not list(differences(berlin("30 4 * * *")))


@pytest.mark.parametrize("about", RATES)
def test_rates_single_times_and_bounds_mean_what_eventbridge_documents(about: str) -> None:
    schedule, theirs, told = RATES[about]
    assert not list(checking.problems(schedule))
    found = islice(fires(schedule.spec(), datetime(2026, 1, 1, tzinfo=UTC)), 3)
    assert [moment.isoformat(timespec="minutes") for moment in found] == told
    assert expression(schedule.spec()) == theirs
    for text in told:
        moment = datetime.fromisoformat(text)
        assert last(schedule.spec(), moment) == moment
        assert moment not in list(islice(fires(schedule.spec(), moment), 3))
    assert last(schedule.spec(), datetime(2026, 1, 1, tzinfo=UTC)) is None


_PARTS = {
    last: st.one_of(
        st.sampled_from(["*", f"*/{max(2, last // 4)}", f"{first}-{last}", f"{first}-{last}/3"]),
        st.lists(st.integers(first, last).map(str), min_size=1, max_size=4).map(",".join),
    )
    for first, last in ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
}


@given(st.tuples(*_PARTS.values()).map(" ".join))
def test_the_scheduler_takes_every_expression_that_is_rendered(written: str) -> None:
    assume(not list(cron.problems(written)))
    assert matches(SCHEDULE, cron.eventbridge(written))


def test_the_last_time_of_a_leap_day_is_found() -> None:
    leap = ScheduleSpec(cron="0 6 29 2 *", timezone="UTC")
    assert last(leap, datetime(2028, 2, 29, 5, tzinfo=UTC)) == datetime(2024, 2, 29, 6, tzinfo=UTC)


def test_a_month_is_counted() -> None:
    assert runs_per_month(Schedule(rate="1 day", start="2027-01-01").spec()) == 365.25 / 12
    assert runs_per_month(Schedule(at="2027-01-01").spec()) == 1


@pytest.mark.parametrize(
    ("written", "field", "words"),
    [
        ({}, "", "write one of cron: 0 6 * * MON, rate: 6 hours, at: 2027-03-01T06:00; none is"),
        ({"cron": "0 6 * * *", "at": "2027-01-01"}, "at", "got cron and at"),
        ({"rate": "0 hours", "start": "2027-01-01"}, "rate", "the shortest is 1 minute"),
        ({"rate": "30 seconds", "start": "2027-01-01"}, "rate", "minutes, hours or days, got"),
        ({"cron": "0 6 * * *", "catchup": True}, "catchup", "needs a first time; write start"),
        ({"rate": "6 hours"}, "start", "a rate counts from its first run"),
        (
            {"cron": "0 6 * * *", "start": "2027-02-01", "end": "2027-01-01"},
            "end",
            "2027-01-01T00:00 is not after start, 2027-02-01T00:00, so it would never run",
        ),
        (
            {"cron": "0 6 * * *", "start": "2027-02-01T06:00", "end": "2027-02-01T05:00Z"},
            "end",
            "is not after start",
        ),
        ({"at": "2027-03-28T02:30", "timezone": "Europe/Berlin"}, "at", "where clocks go over it"),
        ({"at": "2027-03-28", "end": "2027-03-29"}, "end", "runs once has no other times"),
        *(
            ({"cron": "0 6 * * *", "timezone": zone}, "timezone", "expected an IANA time zone")
            for zone in ("Europe/Berln", "", "../etc/passwd", "/etc/localtime", "Europe")
        ),
    ],
)
def test_nonsense_is_refused_with_its_field(
    written: dict[str, Any], field: str, words: str
) -> None:
    [problem] = checking.problems(Schedule(**written))
    assert problem.path == field
    assert words in problem.message


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("soon", "expected a time such as 2027-03-01T06:00, got 'soon'"),
        (20270301, "expected a time such as 2027-03-01T06:00, got 20270301"),
        ("2027-03-01T06:00:30", "schedules have whole minutes"),
    ],
)
def test_a_time_is_written_in_one_way(written: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(words)):
        Schedule(at=written)


def test_yaml_may_read_a_time_as_one() -> None:
    assert Schedule(at=date(2027, 3, 1)) == Schedule(at="2027-03-01T00:00")  # type: ignore[arg-type]  # as YAML has it
    assert Schedule(at=datetime(2027, 3, 1, 6)).at == "2027-03-01T06:00"  # type: ignore[arg-type]  # as YAML has it


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ({"time_parameter": "untl"}, "there is no parameter 'untl'; did you mean 'until'?"),
        ({"time_parameter": "rows"}, "rows is a number; a time is a text, so type: string"),
        (
            {"time_parameter": "until", "parameters": {"until": "2027-03-01"}},
            "schedule.parameters gives until a value as well; remove one of them",
        ),
    ],
)
def test_the_time_of_a_run_needs_a_parameter_of_its_own(
    schedule: dict[str, Any], words: str
) -> None:
    with pytest.raises(PipelineError) as error:
        timed({"cron": "0 6 * * *", **schedule})
    assert f"schedule.time_parameter: {words}" in str(error.value)


def test_a_parameter_that_gets_the_time_needs_no_default() -> None:
    assert timed({"cron": "0 6 * * *", "time_parameter": "until"}).unscheduled() == ()
    assert timed({"cron": "0 6 * * *"}).unscheduled() == ("until",)


def timed(schedule: dict[str, Any]) -> Pipeline:
    return Pipeline.parse(
        {
            "name": "timed",
            "region": "us-east-1",
            "workspace": "s3://bucket/runs",
            "parameters": {"until": {}, "rows": {"type": "number", "default": 1}},
            "schedule": schedule,
            "stages": {"rest": {"kind": "pause", "duration_s": 60}},
        }
    )
