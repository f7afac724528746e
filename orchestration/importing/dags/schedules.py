"""The schedule of a DAG, where a pipeline's starts the same runs.

Read in Airflow 3.3.2 (``airflow.sdk.definitions.dag``, ``airflow.timetables``, November 2026), with
the settings that it comes with: a cron is a ``CronTriggerTimetable`` in the time zone of the DAG's
``start_date``, a ``timedelta`` a ``DeltaTriggerTimetable``, and a DAG does not catch up.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from orchestration.importing.dags.syntax import Dag, name_of
from orchestration.importing.imported import Note
from orchestration.pipeline.schedules.checking import problems
from orchestration.pipeline.schedules.cron import zone_problems
from orchestration.pipeline.schedules.firing import differences
from orchestration.pipeline.schedules.model import Schedule

_SCHEDULES: Final = ("schedule", "schedule_interval", "timetable")
_BOUNDS: Final = ("start_date", "end_date", "catchup")
_PRESETS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_UNITS: Final = ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks")
_PARTS: Final = ("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo")
_MINUTE: Final = timedelta(minutes=1)
_INSTANT: Final = timedelta(microseconds=1)
_PLAIN_ZONE: Final = ("timezone", "UTC")
_WHEN_FILE_RUNS: Final = "is known only when the file runs"


class _Unsaid(Exception):
    """A schedule that a pipeline can't say, with the reason."""


@dataclass(frozen=True, slots=True)
class _Moment:
    """A time of a clock, and its time zone."""

    time: datetime
    zone: str


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The schedule that a pipeline has for a DAG, and what is left out."""

    fields: dict[str, Any]
    """``schedule`` and ``overlap``."""
    said: frozenset[str]
    """The arguments of the DAG that need no further note."""
    notes: tuple[Note, ...] = ()


def scheduled(dag: Dag) -> Scheduled:
    """Return when a DAG runs by itself, as a pipeline says it."""
    key = next((key for key in _SCHEDULES if key in dag.given), None)
    if key is None or _constant(dag, dag.given[key]) == (None,):
        return Scheduled({}, frozenset(() if key is None else (key,)))
    try:
        made, notes = _schedule(dag, key)
    except _Unsaid as reason:
        return Scheduled({}, frozenset({key}), (Note(f"DAG.{key}", f"is left out: {reason}"),))
    most = dag.settings.get("max_active_runs")
    fields = {"schedule": made, "overlap": "queue" if most == 1 else "allow"}
    # Airflow's own default is 16, which is no setting of the file.
    counted = {"max_active_runs"} if most == 1 else set()
    return Scheduled(fields, frozenset({key, *_BOUNDS, *counted}), tuple(notes))


def _schedule(dag: Dag, key: str) -> tuple[dict[str, Any], list[Note]]:
    start, end = _bound(dag, "start_date"), _bound(dag, "end_date")
    made = _times(dag, dag.given[key], "UTC" if start is None else start.zone)
    zone = made["timezone"]
    catchup, notes = _flag(dag, "catchup"), [] if start is None else list(_unsure(dag))
    if "rate" in made and not catchup:
        raise _Unsaid(
            f"without catchup, Airflow counts {made['rate']} from the moment at which it asks; "
            f"write schedule: {{rate: {made['rate']}, start: …}}, which counts from its first run"
        )
    if catchup:
        if start is None:
            raise _Unsaid("it catches up, and no start_date says since when")
        if "rate" in made and start.time != start.time.replace(second=0, microsecond=0):
            raise _Unsaid("a rate counts from a whole minute")
        made |= {"start": _written(start, zone, up_to=start.time), "catchup": True}
    elif start is not None:
        text = "is left out: write schedule.start if it is still to come; catchup is not true"
        notes.append(Note("DAG.start_date", text))
    if end is not None:
        # Airflow still runs at its end, a pipeline no more.
        made["end"] = _written(end, zone, up_to=end.time.replace(second=0) + _INSTANT)
    notes += _checked(made, key)
    return {name: value for name, value in made.items() if (name, value) != _PLAIN_ZONE}, notes


def _unsure(dag: Dag) -> Iterator[Note]:
    """Yield what a file leaves to its Airflow, where that may be one or the other."""
    if "catchup" not in dag.given and not dag.of_airflow_3:
        yield Note(
            "DAG.catchup",
            "is not given, and the pipeline starts no run that was missed, as Airflow 3; Airflow 2 "
            "starts all since start_date: if it did, write schedule.start and schedule.catchup",
        )


def _checked(made: dict[str, Any], key: str) -> Iterator[Note]:
    """Yield where the schedule differs after all; refuse one that a pipeline refuses."""
    schedule = Schedule.model_validate(made)
    for problem in problems(schedule):
        raise _Unsaid(problem.message)
    if schedule.start is not None or schedule.end is not None:
        plain = replace(schedule.spec(), start=None, end=None)
        for problem in differences(plain):
            yield Note(f"DAG.{key}", f"runs as EventBridge does: {problem.message}")


def _times(dag: Dag, node: ast.expr, zone: str) -> dict[str, Any]:
    """Return the cron or rate of a schedule, with its time zone."""
    match _resolved(dag, node):
        case ast.Constant(str(text)) if text in ("@once", "@continuous"):
            raise _Unsaid(f"a pipeline has no {text}; start it yourself, or write schedule.at")
        case ast.Constant(str(text)):
            return {"cron": _PRESETS.get(text, text), "timezone": zone}
        case ast.Call(func) as call if name_of(func) == "timedelta":
            return {"rate": _rate(_delta(dag, call)), "timezone": zone}
        case ast.Call(func) as call if name_of(func) == "CronTriggerTimetable":
            return _of_timetable(dag, call)
        case other:
            raise _Unsaid(f"a pipeline's schedule has cron, rate or at, and not {_text(other)}")


def _of_timetable(dag: Dag, call: ast.Call) -> dict[str, Any]:
    given = _named(call, ("cron", "timezone"))
    if unknown := sorted(given.keys() - {"cron", "timezone", "interval"}):
        raise _Unsaid(f"a pipeline's schedule has no {', '.join(unknown)}")
    if not {"cron", "timezone"} <= given.keys():
        raise _Unsaid(f"{_text(call)} names no cron and timezone")
    return _times(dag, given["cron"], _zone(dag, given["timezone"]))


def _named(call: ast.Call, names: Sequence[str]) -> dict[str, ast.expr]:
    """Return the arguments of a call, those by their place under these names."""
    if len(call.args) > len(names):
        raise _Unsaid(f"{_text(call)} has more arguments than {', '.join(names)}")
    given = dict(zip(names, call.args, strict=False))
    return given | {str(each.arg): each.value for each in call.keywords}


def _rate(delta: timedelta) -> str:
    minutes, rest = divmod(delta, _MINUTE)
    if rest or minutes < 1:
        raise _Unsaid(f"a rate is a number of whole minutes, and not {delta}")
    for unit, size in (("day", 24 * 60), ("hour", 60), ("minute", 1)):
        if minutes % size == 0:
            number = minutes // size
            return f"{number} {unit}{'' if number == 1 else 's'}"
    raise AssertionError  # pragma: no cover - one minute divides every number of them


def _delta(dag: Dag, call: ast.Call) -> timedelta:
    named = _named(call, _UNITS)
    try:
        return timedelta(**{name: _number(dag, value) for name, value in named.items()})
    except (TypeError, OverflowError) as error:
        raise _Unsaid(f"{_text(call)} is no time: {error}") from error


def _bound(dag: Dag, key: str) -> _Moment | None:
    node = dag.given.get(key, _default(dag, key))
    if node is None or _constant(dag, node) == (None,):
        return None
    match _resolved(dag, node):
        case ast.Call(func) as call if name_of(func) == "datetime":
            return _moment(dag, call)
        case _:
            raise _Unsaid(f"{key}, {_text(node)}, {_WHEN_FILE_RUNS}")


def _default(dag: Dag, key: str) -> ast.expr | None:
    match _resolved(dag, dag.given.get("default_args", ast.Constant(None))):
        case ast.Dict(keys, values):
            for name, value in zip(keys, values, strict=True):
                if isinstance(name, ast.Constant) and name.value == key:
                    return value
    return None


def _moment(dag: Dag, call: ast.Call) -> _Moment:
    """Return the time of ``datetime(…)`` or ``pendulum.datetime(…)``, both in UTC by themselves."""
    named = _named(call, _PARTS)
    zones = [named.pop(name) for name in ("tzinfo", "tz") if name in named]
    parts: dict[str, Any] = {name: _number(dag, value) for name, value in named.items()}
    zone = _zone(dag, zones[0]) if zones else "UTC"
    try:
        return _Moment(datetime(**parts), zone)
    except (TypeError, ValueError) as error:
        raise _Unsaid(f"{_text(call)} is no time of whole seconds: {error}") from error


def _written(moment: _Moment, zone: str, *, up_to: datetime) -> str:
    """Return the first whole minute that is not before a time, on the clock of a zone."""
    minute = -(-(up_to - datetime.min) // _MINUTE) * _MINUTE + datetime.min
    there = minute.replace(tzinfo=ZoneInfo(moment.zone)).astimezone(ZoneInfo(zone))
    return f"{there:%Y-%m-%dT%H:%M}"


def _zone(dag: Dag, node: ast.expr) -> str:
    match _resolved(dag, node):
        case ast.Constant(str(name)):
            pass
        case ast.Call(func, [ast.Constant(str(name))], []) if name_of(func) in (
            "timezone",
            "ZoneInfo",
        ):
            pass
        case ast.Attribute(_, "utc" | "UTC") | ast.Name("utc" | "UTC"):
            name = "UTC"
        case other:
            raise _Unsaid(f"its time zone, {_text(other)}, {_WHEN_FILE_RUNS}")
    for problem in zone_problems(name):
        raise _Unsaid(problem.message)
    return name


def _flag(dag: Dag, key: str) -> bool:
    node = dag.given.get(key)
    value = (False,) if node is None else _constant(dag, node)
    if value is None:
        raise _Unsaid(f"{key} {_WHEN_FILE_RUNS}")
    return bool(value[0])


def _number(dag: Dag, node: ast.expr) -> int | float:
    match _constant(dag, node):
        case (int() | float() as number,):
            return number
        case _:
            raise _Unsaid(f"{_text(node)} {_WHEN_FILE_RUNS}")


def _constant(dag: Dag, node: ast.expr) -> tuple[Any] | None:
    match _resolved(dag, node):
        case ast.Constant(value):
            return (value,)
        case _:
            return None


def _resolved(dag: Dag, node: ast.expr) -> ast.expr:
    """Return what the file's own names stand for."""
    seen: set[str] = set()
    while isinstance(node, ast.Name) and node.id in dag.constants and node.id not in seen:
        seen.add(node.id)
        node = dag.constants[node.id]
    return node


def _text(node: ast.expr) -> str:
    return ast.unparse(node)
