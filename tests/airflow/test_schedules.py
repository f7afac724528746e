"""Airflow's own timetable starts the runs that the table demands, but for the rows that say so.

Schedules that it can't mean have a timetable of ours.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction, Timetable
from airflow.timetables.simple import NullTimetable
from airflow.timetables.trigger import CronTriggerTimetable
from pendulum import DateTime, instance, now

from orchestration.airflow import dag
from orchestration.airflow.dags.timetable import FireTimes
from orchestration.graph import ScheduleSpec
from orchestration.pipeline import Schedule
from tests.airflow.workflows import training, workflow
from tests.schedule_rows import FIRES, after, moments, named

ALL = TimeRestriction(earliest=None, latest=None, catchup=True)


def runs(timetable: Timetable, after: datetime, count: int) -> list[DateTime]:
    last = instance(after)
    found = []
    for _ in range(count):
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
    timetable = CronTriggerTimetable(row["cron"], timezone=row["timezone"])
    found = runs(timetable, after(row), len(row["next"]))
    if row.get("airflow") == "second":
        assert found == second(row) != moments(row)
    else:
        assert (found == moments(row)) is ("airflow" not in row)


@pytest.mark.parametrize("row", FIRES, ids=named)
def test_ours_starts_them_all(row: dict[str, Any]) -> None:
    schedule = ScheduleSpec(cron=row["cron"], timezone=row["timezone"], start="2026-01-01T00:00Z")
    assert runs(FireTimes.of(schedule), after(row), len(row["next"])) == moments(row)


HOURLY = ScheduleSpec(rate="1 hours", timezone="UTC", start="2026-01-01T00:30Z")


def due(
    schedule: ScheduleSpec, before: datetime | None = None, *, catchup: bool = False
) -> datetime | None:
    """The next run of a schedule in the present."""
    info: DagRunInfo | None = FireTimes.of(schedule).next_dagrun_info(
        last_automated_data_interval=None
        if before is None
        else DataInterval.exact(instance(before)),
        restriction=restriction(catchup),
    )
    return None if info is None else info.logical_date


def restriction(catchup: bool) -> TimeRestriction:
    return TimeRestriction(earliest=None, latest=None, catchup=catchup)


def at(moment: datetime) -> ScheduleSpec:
    return ScheduleSpec(at=moment.isoformat(), timezone="UTC")


def test_what_was_before_the_dag_came_does_not_run() -> None:
    found = due(HOURLY)
    assert found is not None
    assert timedelta(hours=-1) <= found - datetime.now(tz=UTC) <= timedelta(hours=1)
    assert found.minute == 30
    assert due(HOURLY, catchup=True) == datetime(2026, 1, 1, 0, 30, tzinfo=UTC)


def test_of_what_was_missed_only_the_last_is_run_unless_it_catches_up() -> None:
    before = datetime(2026, 1, 1, 5, 30, tzinfo=UTC)
    found = due(HOURLY, before)
    assert found is not None
    assert timedelta(0) <= datetime.now(tz=UTC) - found < timedelta(hours=1)
    assert due(HOURLY, before, catchup=True) == before + timedelta(hours=1)


def test_once_is_once_and_may_be_late_by_an_hour() -> None:
    moment = now("UTC").replace(microsecond=0)
    late, lost = moment - timedelta(minutes=30), moment - timedelta(hours=2)
    assert due(at(late)) == late
    assert due(at(late), late) is None
    assert due(at(lost)) is None
    assert due(at(moment + timedelta(days=1))) == moment + timedelta(days=1)


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(rate="6 hours", start="2027-01-01T06:00", timezone="Europe/Berlin"),
        Schedule(at="2027-01-01T06:00"),
        Schedule(cron="0 6 * * *", end="2028-01-01"),
        Schedule(cron="0 6 * * *", start="2026-01-01", catchup=True),
    ],
)
def test_a_dag_with_it_is_written_and_read(schedule: Schedule) -> None:
    """The plugin registers the timetable, or Airflow would refuse the DAG."""
    made = dag(replace(workflow(training("train.job")), schedule=schedule.spec()))
    read = DagSerialization.from_dict(DagSerialization.to_dict(made))
    assert isinstance(read.timetable, FireTimes)
    assert read.catchup is schedule.catchup
    assert read.timetable == FireTimes.of(schedule.spec())
    assert read.timetable.summary.split(":")[0] in ("rate", "at", "cron")
    assert read.timetable != NullTimetable()
    assert len({read.timetable, FireTimes.of(schedule.spec())}) == 1
