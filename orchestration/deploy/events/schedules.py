"""The schedule of EventBridge Scheduler that starts a pipeline at its times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from orchestration.backends.stepfunctions.parameters import RUN
from orchestration.deploy.account import refusal
from orchestration.deploy.events.missed import SCHEDULED_TIME
from orchestration.deploy.resources import Current, Names, Role, Schedule
from orchestration.deploy.starting import Maker, schedule
from orchestration.pipeline.schedules.checking import over
from orchestration.pipeline.schedules.firing import expression, fires
from orchestration.pipeline.schedules.rate import period

if TYPE_CHECKING:
    from orchestration.expressions import Json
    from orchestration.graph import ScheduleSpec, Workflow

_OLDEST_START: Final = timedelta(minutes=5)
"""A schedule that is made or changed with an earlier start is refused: "The StartDate you specify
cannot be earlier than 5 minutes ago." (recorded in https://github.com/getmoto/moto/pull/8172)."""
_INSTANT: Final = timedelta(seconds=1)


def desired(
    workflow: Workflow, names: Names, chosen: Mapping[str, Json], maker: Maker
) -> tuple[Role | None, Schedule | None]:
    """Compute the schedule of a workflow, and the role with which it starts executions."""
    spec = workflow.schedule
    if spec is None:
        return None, None
    starter = maker.starter(
        names.schedule_role,
        "StartRuns",
        names.machine_arn,
        {"scheduler.amazonaws.com": maker.schedules},
        alias=names.alias,
    )
    made = schedule(
        names.schedule,
        names.start_arn,
        starter,
        expression(spec),
        timezone=spec.timezone,
        input={**chosen, **values(spec), RUN: f"{workflow.name}/{SCHEDULED_TIME}"},
    )
    bounded = replace(
        made,
        start=None if spec.start is None else _written(_moment(spec.start)),
        # At the very moment of EndDate, EventBridge may fire or not.
        end=None if spec.end is None else _written(_moment(spec.end) - _INSTANT),
        window_minutes=spec.flexible_window_minutes,
    )
    return starter, bounded


def values(spec: ScheduleSpec) -> dict[str, Json]:
    """Return the values that a schedule gives its runs, the time as the scheduler is told it."""
    timed = {} if spec.time_parameter is None else {spec.time_parameter: SCHEDULED_TIME}
    return {**spec.parameters, **timed}


def settled(
    workflow: Workflow, wanted: Schedule | None, there: Schedule | None, now: datetime
) -> Schedule | None:
    """Return a schedule with a start that EventBridge Scheduler takes now, and with the same times.

    A start that is over is left as it is deployed, or becomes the next time of a rate. What was
    started before the deployed schedule is known only of its own times. A
    :class:`~orchestration.errors.DeployError` says where a schedule that is to be made or changed
    would never start anything.
    """
    spec = workflow.schedule
    if spec is None or wanted is None:
        return wanted
    if there is not None and _has_times_of(spec, wanted, there, now):
        wanted = replace(wanted, caught_up=there.caught_up)
        if replace(there, start=wanted.start) == wanted:
            return there
    if problems := [f"{each.path}: {each.message}" for each in over(spec, now)]:
        raise refusal(f"pipeline {workflow.name} can't be deployed", problems)
    if spec.start is None or _moment(spec.start) > now - _OLDEST_START:
        return wanted
    return replace(wanted, start=None if spec.rate is None else _written(next(fires(spec, now))))


def known(current: Current) -> Schedule | None:
    """Return the deployed schedule; if its state machine is gone, so is what it has started."""
    there = current.schedule
    if there is None or current.machine is not None:
        return there
    return replace(there, caught_up=None)


def _has_times_of(spec: ScheduleSpec, wanted: Schedule, there: Schedule, now: datetime) -> bool:
    """Return whether a deployed schedule has the times that the written one has."""
    same = (there.expression, there.timezone) == (wanted.expression, wanted.timezone)
    return same and _fits(spec, there, now)


def _fits(spec: ScheduleSpec, there: Schedule, now: datetime) -> bool:
    """Return whether a deployed schedule's start leads to the times that the written one does."""
    if spec.start is None or there.start is None:
        over = spec.start is None or _moment(spec.start) <= now
        return there.start is None and spec.rate is None and over
    since = _moment(there.start) - _moment(spec.start)
    step = period(spec.rate or "")
    return not since or bool(step and since > timedelta(0) and not since % step)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _written(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
