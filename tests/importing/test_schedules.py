"""A DAG's schedule becomes the pipeline's where both start the same runs; else it is told why."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import DataInterval, TimeRestriction, Timetable
from pendulum import instance

from orchestration import Pipeline
from orchestration.airflow import dag
from orchestration.importing import Imported, from_dag
from orchestration.pipeline.schedules.firing import fires

if TYPE_CHECKING:
    from airflow.sdk import DAG

pytestmark = pytest.mark.slow  # reads DAGs with Airflow

SOURCE = dedent(
    """\
    import datetime
    import pendulum
    from datetime import timedelta
    from zoneinfo import ZoneInfo
    from airflow.providers.amazon.aws.operators.sns import SnsPublishOperator
    from airflow.sdk import DAG, Asset, CronTriggerTimetable

    EVERY = "30 6 * * MON-FRI"
    DEFAULTS = {"start_date": pendulum.datetime(2026, 3, 27, 6, 45, tz="Europe/Berlin")}

    with DAG("nightly", %s) as made:
        SnsPublishOperator(task_id="tell", target_arn="arn:aws:sns:us-east-1:111122223333:t",
                           message="m")
    """
)
LAST = datetime(2027, 3, 1, tzinfo=UTC)


def imported(arguments: str) -> Imported:
    return from_dag(SOURCE % arguments)


def timetable(made: DAG) -> Timetable:
    """The timetable, as Airflow's scheduler reads it."""
    found: Timetable = DagSerialization.from_dict(DagSerialization.to_dict(made)).timetable
    return found


def runs(made: DAG, count: int) -> list[datetime]:
    """The runs of a DAG: all from its start where it catches up, else those after a last one."""
    catchup, found = made.catchup, list[datetime]()
    last = None if catchup else DataInterval.exact(instance(LAST))
    bounds = TimeRestriction(
        earliest=None if made.start_date is None else instance(made.start_date),
        latest=None if made.end_date is None else instance(made.end_date),
        catchup=True,
    )
    while len(found) < count:
        info = timetable(made).next_dagrun_info(
            last_automated_data_interval=last, restriction=bounds
        )
        if info is None:
            break
        found.append(info.run_after)
        last = DataInterval.exact(info.run_after)
    return found


@pytest.mark.parametrize(
    ("arguments", "schedule"),
    [
        ("schedule='0 6 * * *'", {"cron": "0 6 * * *"}),
        ("schedule=EVERY, catchup=False", {"cron": "30 6 * * MON-FRI"}),
        ("schedule='@daily'", {"cron": "0 0 * * *"}),
        ("schedule='@midnight'", {"cron": "0 0 * * *"}),
        ("schedule='@hourly'", {"cron": "0 * * * *"}),
        ("schedule='@weekly'", {"cron": "0 0 * * 0"}),
        ("schedule='@monthly'", {"cron": "0 0 1 * *"}),
        ("schedule='@quarterly'", {"cron": "0 0 1 */3 *"}),
        ("schedule='@yearly'", {"cron": "0 0 1 1 *"}),
        (
            "schedule=CronTriggerTimetable('0 4 * * *', timezone='Asia/Tokyo')",
            {"cron": "0 4 * * *", "timezone": "Asia/Tokyo"},
        ),
        (
            "schedule='0 6 * * *', start_date=datetime.datetime(2026, 1, 1, 6), catchup=True",
            {"cron": "0 6 * * *", "start": "2026-01-01T06:00", "catchup": True},
        ),
        (
            "schedule='0 6 * * *', catchup=True, "
            "start_date=datetime.datetime(2026, 1, 1, 6, 0, 30)",
            {"cron": "0 6 * * *", "start": "2026-01-01T06:01", "catchup": True},
        ),
        (
            "schedule='0 6 * * *', default_args=DEFAULTS, catchup=True",
            {
                "cron": "0 6 * * *",
                "timezone": "Europe/Berlin",
                "start": "2026-03-27T06:45",
                "catchup": True,
            },
        ),
        (
            "schedule='0 6 * * *', catchup=True, "
            "start_date=datetime.datetime(2026, 1, 1, tzinfo=ZoneInfo('America/New_York')), "
            "end_date=datetime.datetime(2026, 1, 6, 6, tzinfo=ZoneInfo('America/New_York'))",
            {
                "cron": "0 6 * * *",
                "timezone": "America/New_York",
                "start": "2026-01-01T00:00",
                "end": "2026-01-06T06:01",
                "catchup": True,
            },
        ),
        (
            "schedule='0 6 * * *', catchup=True, "
            "start_date=datetime.datetime(2026, 1, 1, 0, 0, 0, 0, pendulum.timezone('Asia/Tokyo'))",
            {
                "cron": "0 6 * * *",
                "timezone": "Asia/Tokyo",
                "start": "2026-01-01T00:00",
                "catchup": True,
            },
        ),
        (
            "schedule='0 6 * * *', start_date=pendulum.datetime(2026, 1, 1, 0, 0, 0, 0, "
            "'Asia/Tokyo'), catchup=True",
            {
                "cron": "0 6 * * *",
                "timezone": "Asia/Tokyo",
                "start": "2026-01-01T00:00",
                "catchup": True,
            },
        ),
        (
            "schedule=timedelta(hours=6), catchup=True, "
            "start_date=pendulum.datetime(2026, 1, 1, 0, 15)",
            {"rate": "6 hours", "start": "2026-01-01T00:15", "catchup": True},
        ),
        (
            "schedule=timedelta(days=1, minutes=30), catchup=True, "
            "start_date=datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)",
            {"rate": "1470 minutes", "start": "2026-01-01T00:00", "catchup": True},
        ),
    ],
)
def test_a_schedule_comes_along_and_starts_the_same_runs(
    arguments: str, schedule: dict[str, Any]
) -> None:
    found = imported(arguments)
    assert found.description["schedule"] == schedule
    assert found.description["overlap"] == "allow"
    assert [note.path for note in found.notes if note.path.startswith("DAG.")] == []

    theirs: dict[str, Any] = {}
    exec(SOURCE % arguments, theirs)
    pipeline = Pipeline.parse(yaml.safe_load(found.yaml()))
    ours = dag(pipeline, parameters={"workspace": "s3://b/runs"})
    assert ours.max_active_runs == theirs["made"].max_active_runs
    expected = runs(theirs["made"], 12)
    assert runs(ours, 12) == expected != []
    spec = pipeline.lower().schedule
    assert spec is not None
    after = datetime.min.replace(tzinfo=UTC) if spec.catchup else LAST
    assert list(islice(fires(spec, after), len(expected))) == expected


def test_arguments_by_place_are_those_of_airflow_2() -> None:
    """Airflow 3 takes the ``dag_id`` alone by its place."""
    start = "datetime.datetime(2026, 1, 1, tzinfo=ZoneInfo('Asia/Tokyo'))"
    found = imported(f"'Each day', '@daily', {start}, None, catchup=True")
    assert found.description["schedule"] == {
        "cron": "0 0 * * *",
        "timezone": "Asia/Tokyo",
        "start": "2026-01-01T00:00",
        "catchup": True,
    }
    assert found.notes == ()


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (
            "'Each day', '@daily', None, None, None, 7",
            "arguments by their place, None, 7, are left",
        ),
        ("*EVERY", "arguments by their place, *EVERY, are left out"),
        (
            "'Each day', *EVERY, '@daily'",
            "arguments by their place, *EVERY, '@daily', are left out",
        ),
        ("**DEFAULTS", "arguments behind ** are left out"),
    ],
)
def test_arguments_that_nobody_knows_are_told(arguments: str, left: str) -> None:
    found = imported(arguments)
    [note] = found.notes
    assert note.path == "line 11"
    assert note.message.startswith(left)


def test_one_run_at_a_time_is_a_queue() -> None:
    found = imported("schedule='@daily', max_active_runs=1")
    assert found.description["overlap"] == "queue"
    assert found.notes == ()


@pytest.mark.parametrize("arguments", ["schedule=None", "max_active_tasks=3"])
def test_a_dag_without_a_schedule_has_none_here(arguments: str) -> None:
    assert imported(arguments).description.keys().isdisjoint({"schedule", "overlap"})


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("schedule='@once'", "a pipeline has no @once"),
        ("schedule=timedelta(hours=6)", "without catchup, Airflow counts 6 hours from the moment"),
        ("schedule=timedelta(seconds=90)", "a rate is a number of whole minutes, and not 0:01:30"),
        (
            "schedule=[Asset('a')]",
            "a pipeline's schedule has cron, rate or at, and not [Asset('a')]",
        ),
        ("schedule='0 0 1 * MON'", "day of month and day of week are both given"),
        ("schedule='0 0 * * *', start_date=pendulum.today('UTC')", "is known only when the file"),
        ("schedule='0 0 * * *', catchup=True", "it catches up, and no start_date says since when"),
        ("schedule='0 0 * * *', catchup=bool(EVERY)", "catchup is known only when the file runs"),
        ("schedule=CronTriggerTimetable('0 0 * * *', 'Berlin')", "expected an IANA time zone"),
        (
            "schedule=CronTriggerTimetable('0 0 * * *', timezone='UTC', run_immediately=True)",
            "a pipeline's schedule has no run_immediately",
        ),
        (
            "schedule=CronTriggerTimetable('0 0 * * *', 'UTC', timedelta(0))",
            "CronTriggerTimetable('0 0 * * *', 'UTC', timedelta(0)) has more arguments than cron",
        ),
        (
            "schedule=timedelta(1, 0, 0, 0, 0, 0, 0, 1), catchup=True",
            "has more arguments than days, seconds",
        ),
        (
            "schedule='@daily', start_date=pendulum.datetime(2026, 1, 1, 0, 0, 0, 0, 'UTC', 1)",
            "has more arguments than year, month",
        ),
        (
            "schedule=timedelta(hours=6), catchup=True, "
            "start_date=datetime.datetime(2026, 1, 1, 0, 0, 0, 1)",
            "a rate counts from a whole minute",
        ),
        (
            "schedule='0 0 * * *', start_date=datetime.datetime(2026, 13, 1), catchup=True",
            "datetime.datetime(2026, 13, 1) is no time",
        ),
    ],
)
def test_a_schedule_that_would_start_other_runs_is_left_out_with_the_reason(
    arguments: str, reason: str
) -> None:
    found = imported(arguments)
    [told] = [note.message for note in found.notes if note.path == "DAG.schedule"]
    assert told.startswith("is left out: ")
    assert reason in told
    assert "schedule" not in found.description


def test_a_start_without_catchup_is_told() -> None:
    found = imported("schedule='@daily', start_date=datetime.datetime(2026, 1, 1)")
    assert found.description["schedule"] == {"cron": "0 0 * * *"}
    [note] = found.notes
    assert note.path == "DAG.start_date"
    assert "write schedule.start if it is still to come" in note.message


OF_AIRFLOW_2 = SOURCE.replace(
    "airflow.sdk import DAG, ", "airflow import DAG\nfrom airflow import "
)
OF_BOTH = f"try:\n    import airflow.sdk\nexcept ImportError:\n    pass\n{OF_AIRFLOW_2}"
STARTS = ", start_date=datetime.datetime(2026, 1, 1)"


@pytest.mark.parametrize(
    ("source", "arguments", "told"),
    [
        (OF_AIRFLOW_2, STARTS, True),
        (OF_BOTH, STARTS, True),
        (OF_AIRFLOW_2, "", False),
        (OF_AIRFLOW_2, f"{STARTS}, catchup=False", False),
        (SOURCE, STARTS, False),
    ],
)
def test_a_default_that_versions_of_airflow_differ_in_is_told(
    source: str, arguments: str, *, told: bool
) -> None:
    found = from_dag(source % f"schedule='@daily'{arguments}")
    assert found.description["schedule"] == {"cron": "0 0 * * *"}
    notes = [note.message for note in found.notes if note.path == "DAG.catchup"]
    assert [("Airflow 2 starts all since start_date" in each) for each in notes] == [True] * told


def test_more_runs_at_a_time_than_one_and_less_than_all_are_told() -> None:
    found = imported("schedule='@daily', max_active_runs=4")
    assert found.description["overlap"] == "allow"
    assert [str(note) for note in found.notes] == ["DAG.max_active_runs: is left out"]


def test_where_bounds_let_clocks_matter_it_is_told() -> None:
    arguments = (
        "schedule='30 2 * * *', catchup=True, "
        "start_date=pendulum.datetime(2026, 1, 1, tz='Europe/Berlin')"
    )
    found = imported(arguments)
    told = [note.message for note in found.notes if note.path == "DAG.schedule"]
    assert "02:30 does not exist in Europe/Berlin on 28 March 2027" in told[0]
