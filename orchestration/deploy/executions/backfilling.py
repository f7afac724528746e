"""Runs for times of a schedule that are over, each the run that the schedule would have started."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from orchestration.backends.stepfunctions.parameters import RUN
from orchestration.deploy.account import Account, Clients, in_its_place
from orchestration.deploy.events.missed import (
    SCHEDULED_TIME,
    CaughtUp,
    Missed,
    between,
    run_of,
    unwatched,
    written,
)
from orchestration.deploy.events.schedules import values as scheduled_values
from orchestration.deploy.executions.cleaning import Sleep
from orchestration.deploy.executions.operating import start
from orchestration.deploy.executions.runs import described
from orchestration.deploy.resources import GROUP
from orchestration.errors import StartError
from orchestration.execution.timing import wait
from orchestration.expressions import Json
from orchestration.expressions.evaluate import run_token

if TYPE_CHECKING:
    from orchestration.deploy.resources import Current, Desired, Schedule
    from orchestration.pipeline import Pipeline

MOST: Final = 1000
"""Fire times of one back-fill."""
_LOOKS_EVERY_S: Final = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
    """A time of a schedule, and the run that belongs to it."""

    time: datetime
    run: str
    """The identity that the schedule gives the run."""
    execution: str | None = None
    """The ARN of its newest execution; ``None`` if it never ran."""
    status: str | None = None


def fires_between(pipeline: Pipeline, begin: datetime, end: datetime) -> tuple[Fire, ...]:
    """List the times of a schedule from ``begin`` until before ``end``.

    Raises :class:`~orchestration.errors.StartError` for a pipeline without a schedule, and for too
    many times.
    """
    schedule = pipeline.schedule_spec()
    if schedule is None:
        raise StartError(f"{pipeline.name} has no schedule, whose times could be run later")
    found = tuple(islice(between(schedule, begin, end), MOST + 1))
    if len(found) > MOST:
        raise StartError(
            f"{pipeline.name} has more than {MOST} times until {found[-1]:%Y-%m-%d}; "
            "choose a shorter while, and run the rest later"
        )
    return tuple(Fire(time=each, run=run_of(pipeline.name, each)) for each in found)


def check_number(pipeline: Pipeline, at_most: int) -> None:
    """Refuse runs side by side where the pipeline's policy lets only one of them go on.

    Raises :class:`~orchestration.errors.StartError`.
    """
    policy = pipeline.lower().overlapping
    if at_most > 1 and policy != "allow":
        raise StartError(
            f"{pipeline.name} runs one at a time (overlap: {policy}), so {at_most} side by side "
            "would not help; leave out --at-most, or write overlap: allow and deploy that"
        )


def missed(
    pipeline: Pipeline, desired: Desired, current: Current, session: Clients, now: datetime
) -> Missed | None:
    """Return the runs that a schedule which is not there yet should have started by now.

    Of one that is there, and settled, those whose times fell into the moments in which it was made.
    """
    spec, schedule = pipeline.schedule_spec(), desired.schedule
    if spec is None or schedule is None or not spec.catchup or spec.start is None:
        return None
    new = current.schedule is None
    begin = datetime.fromisoformat(spec.start)
    times = between(spec, begin, now) if new else unwatched(schedule.caught_up, spec, now)
    fires = (Fire(time=each, run=run_of(pipeline.name, each)) for each in times)
    wanted = tuple(islice(fires, MOST + 1))
    if current.machine is not None:
        wanted = looked_up(pipeline, wanted, session=session)
    return Missed(
        pipeline=pipeline.name,
        start_arn=desired.start_arn,
        schedule=spec,
        input=schedule.input,
        times=tuple(each.time for each in wanted if each.execution is None),
        until=now if new else None,
    )


def marked(schedule: Schedule | None, missed: Missed | None) -> Schedule | None:
    """Return a schedule that is made with the moment up to which its runs are started before."""
    if schedule is None or missed is None or missed.until is None:
        return schedule
    return replace(schedule, caught_up=CaughtUp(written(missed.until)))


def looked_up(pipeline: Pipeline, wanted: Sequence[Fire], *, session: Clients) -> tuple[Fire, ...]:
    """Find the executions of runs, whoever started them."""
    from botocore.exceptions import BotoCoreError, ClientError

    if not wanted:
        return ()
    account = Account.of(session)
    in_its_place(pipeline, account)
    machine = account.arn("states", f"stateMachine:{pipeline.name}")
    states = session.client("stepfunctions")
    try:
        known = _known(states, machine, wanted[0].time)
    except states.exceptions.StateMachineDoesNotExist as error:
        raise StartError(
            f"pipeline {pipeline.name} is not deployed to {account.id} in {account.region}; "
            "`orchestrate deploy step-functions` does that"
        ) from error
    except (BotoCoreError, ClientError) as error:
        raise StartError(f"runs of {pipeline.name} can't be listed: {error}") from error
    return tuple(
        Fire(time=each.time, run=each.run, execution=arn, status=status)
        for each in wanted
        for arn, status in [known.get(run_token(each.run), (None, None))]
    )


def _known(states: Any, machine: str, since: datetime) -> dict[str, tuple[str, str]]:
    """Return the newest execution of each run since a moment: its ARN and its state, by token."""
    found: dict[str, tuple[str, str]] = {}
    for page in states.get_paginator("list_executions").paginate(stateMachineArn=machine):
        for each in page["executions"]:
            # No run is started before its time.
            if each["startDate"] < since:
                return found
            execution = described(states, each["executionArn"])
            found.setdefault(execution.token, (execution.arn, execution.status))
    return found


def values_of(pipeline: Pipeline, session: Clients) -> Mapping[str, Json]:
    """Return the values that the deployed schedule gives its runs; without one, those written.

    The time of a run stands in them as EventBridge Scheduler is told it; :func:`backfill` puts it
    in.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    spec = pipeline.schedule_spec()
    given_here = {} if spec is None else scheduled_values(spec)
    client = session.client("scheduler")
    try:
        there = client.get_schedule(Name=pipeline.name, GroupName=GROUP)
    except client.exceptions.ResourceNotFoundException:
        return dict(given_here)
    except (BotoCoreError, ClientError) as error:
        raise StartError(f"schedule {pipeline.name} can't be read: {error}") from error
    given: dict[str, Json] = json.loads(there["Target"].get("Input", "{}"))
    return {name: value for name, value in given.items() if name != RUN}


def backfill(
    pipeline: Pipeline,
    wanted: Sequence[Fire],
    values: Mapping[str, Json],
    *,
    session: Clients,
    at_most: int = 1,
    sleep: Sleep = wait,
    on_start: Callable[[Fire], None] = lambda _: None,
) -> tuple[Fire, ...]:
    """Start runs, the oldest first and so many side by side; returns them as the last were started.

    The runs that are under way when this returns go on. Raises
    :class:`~orchestration.errors.StartError`.
    """
    check_number(pipeline, at_most)
    states = session.client("stepfunctions")
    spec = pipeline.schedule_spec()
    timed = None if spec is None else spec.time_parameter
    values = values if timed is None else {timed: SCHEDULED_TIME, **values}
    running: list[Fire] = []
    started: list[Fire] = []
    for each in wanted:
        while len(running) >= at_most:
            running = list(_still(states, running))
            if len(running) >= at_most:
                sleep(_LOOKS_EVERY_S)
        arn = start(pipeline, _at(each.time, values), session=session, run=each.run).arn
        begun = Fire(time=each.time, run=each.run, execution=arn, status="RUNNING")
        running.append(begun)
        started.append(begun)
        on_start(begun)
    return tuple(started)


def _at(moment: datetime, values: Mapping[str, Json]) -> dict[str, Json]:
    """Return the values of the run for a moment."""
    return {
        name: written(moment) if value == SCHEDULED_TIME else value
        for name, value in values.items()
    }


def _still(states: Any, running: Sequence[Fire]) -> Iterator[Fire]:
    for each in running:
        if described(states, str(each.execution)).status == "RUNNING":
            yield each
