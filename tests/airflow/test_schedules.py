"""Airflow's own timetable starts the runs that the table demands, but for the rows that say so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from airflow.timetables.base import DataInterval, TimeRestriction
from airflow.timetables.trigger import CronTriggerTimetable
from pendulum import DateTime, instance

from tests.schedule_rows import FIRES, after, moments, named

ALL = TimeRestriction(earliest=None, latest=None, catchup=True)


def runs(row: dict[str, Any]) -> list[DateTime]:
    timetable = CronTriggerTimetable(row["cron"], timezone=row["timezone"])
    last = instance(after(row))
    found = []
    for _ in row["next"]:
        info = timetable.next_dagrun_info(
            last_automated_data_interval=DataInterval.exact(last), restriction=ALL
        )
        assert info is not None
        assert info.run_after is not None
        last = info.run_after
        found.append(last)
    return found


def second(row: dict[str, Any]) -> list[datetime]:
    """The moments, the second one of those that clocks repeat."""
    zone = ZoneInfo(row["timezone"])
    local = (moment.astimezone(zone) for moment in moments(row))
    return [moment.replace(fold=1).astimezone(UTC) for moment in local]


@pytest.mark.parametrize("row", FIRES, ids=named)
def test_runs_start_when_the_table_says(row: dict[str, Any]) -> None:
    found = runs(row)
    if row.get("airflow") == "second":
        assert found == second(row) != moments(row)
    else:
        assert (found == moments(row)) is ("airflow" not in row)
