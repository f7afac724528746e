"""Schedules fire when EventBridge Scheduler documents it, and say where Airflow does not."""

from __future__ import annotations

from datetime import UTC
from itertools import islice
from typing import Any

import pytest

from orchestration.pipeline.schedules import cron
from orchestration.pipeline.schedules.firing import differences, times
from tests.schedule_rows import FIRES, REFUSED, after, moments, named


@pytest.mark.parametrize("row", FIRES, ids=named)
def test_the_next_moments_are_those_that_are_documented(row: dict[str, Any]) -> None:
    assert not list(cron.problems(row["cron"], row["timezone"]))
    found = islice(times(row["cron"], row["timezone"], after(row)), len(row["next"]))
    assert [moment.isoformat(timespec="minutes") for moment in found] == row["next"]
    found = islice(times(row["cron"], row["timezone"], moments(row)[3]), 3)
    assert [moment.astimezone(UTC) for moment in found] == moments(row)[4:7]


@pytest.mark.parametrize("row", REFUSED, ids=named)
def test_what_both_do_not_read_alike_is_refused(row: dict[str, str]) -> None:
    assert list(cron.problems(row["cron"], "UTC"))


@pytest.mark.parametrize("row", FIRES, ids=named)
def test_a_difference_is_told(row: dict[str, Any]) -> None:
    told = [problem.message for problem in differences(row["cron"], row["timezone"])]
    if row.get("airflow") in ("skips", "repeats"):
        words = {"skips": "does not exist", "repeats": "comes twice"}[row["airflow"]]
        assert words in told[0]
    elif row["timezone"] == "UTC":
        assert told == []


def test_the_words_name_the_day_and_both_ways() -> None:
    [skipped] = differences("30 2 * * *", "Europe/Berlin")
    assert skipped.message == (
        "02:30 does not exist in Europe/Berlin on 28 March 2027: EventBridge Scheduler skips it, "
        "Airflow runs at 03:30; choose another time, or timezone: UTC"
    )
    [repeated] = differences("0 * * * *", "Europe/Berlin")
    assert "02:00 comes twice in Europe/Berlin on 31 October 2027" in repeated.message
    assert not list(differences("30 4 * * *", "Europe/Berlin"))
