"""Schedules that are deployed start when they are written to, also where their start is over."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from orchestration.deploy import Account, Desired, Schedule, desired
from orchestration.deploy.applying import schedule_request
from orchestration.deploy.events.schedules import settled
from orchestration.errors import DeployError
from tests.deploy.pipelines import PARAMETERS, copying

ACCOUNT = Account(id="123456789012", region="us-east-1")
NOW = datetime(2027, 6, 1, 12, 30, tzinfo=UTC)
RATE = {"rate": "6 hours", "start": "2027-05-31T01:00", "end": "2028-01-01"}
CRON = {"cron": "0 6 * * *", "start": "2027-05-31T01:00"}


def of(schedule: Any) -> Schedule:
    wanted: Desired = desired(copying(schedule=schedule), ACCOUNT, parameters=PARAMETERS)
    assert wanted.schedule is not None
    return wanted.schedule


def settle(schedule: Any, there: Schedule | None = None) -> Schedule | None:
    return settled(copying(schedule=schedule).lower(), of(schedule), there, NOW)


def test_a_start_to_come_is_sent_with_the_end_and_the_window() -> None:
    written = {**RATE, "start": "2027-07-01T01:00+02:00", "flexible_window_minutes": 15}
    found = settle(written)
    assert found == of(written)
    assert found is not None
    request = schedule_request(found)
    assert request["ScheduleExpression"] == "rate(6 hours)"
    assert (request["StartDate"], request["EndDate"]) == (
        "2027-06-30T23:00:00Z",
        "2027-12-31T23:59:59Z",
    )
    assert request["FlexibleTimeWindow"] == {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15}


def test_a_rate_whose_start_is_over_goes_on_in_step() -> None:
    found = settle(RATE)
    assert found == replace(of(RATE), start="2027-06-01T13:00:00Z")
    assert settle(RATE, found) == found
    # Deployed long ago, and nothing else has changed.
    assert settle(RATE, of(RATE)) == of(RATE)
    other = replace(of(RATE), start="2027-06-01T12:00:00Z")
    assert settle(RATE, other) == found


def test_a_start_of_cron_that_is_over_is_left_out() -> None:
    found = settle(CRON)
    assert found == replace(of(CRON), start=None)
    assert settle(CRON, found) == found
    later = {**CRON, "start": "2027-07-01T00:00"}
    assert settle(later, found) == of(later)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"at": "2027-06-01T12:00"}, "schedule.at: 2027-06-01T12:00Z is over, so it starts no run"),
        ({**CRON, "end": "2027-06-01T12:00"}, "schedule.end: 2027-06-01T12:00Z is over"),
    ],
)
def test_a_schedule_that_is_over_is_refused_unless_it_is_there(written: Any, words: str) -> None:
    with pytest.raises(DeployError, match=words):
        settle(written)
    assert settle(written, of(written)) == of(written)


def test_without_a_schedule_there_is_none() -> None:
    assert settled(copying().lower(), None, of(CRON), NOW) is None
