"""Times of a schedule that were over when it was deployed, for which EventBridge starts nothing.

A schedule with ``catchup`` wants their runs. A deployment starts them before it makes the schedule,
so that one that is there has missed nothing but what fell into the moments in which it was made.
The schedule itself says since when, and the next deployment looks at these, and no further back:
Step Functions forgets executions after 90 days; their runs would be started, and paid, once more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from orchestration.expressions import Json
from orchestration.expressions.evaluate import run_token
from orchestration.phrases import counted
from orchestration.pipeline.schedules.firing import fires
from orchestration.refs.times import ISO

if TYPE_CHECKING:
    from orchestration.graph import Overlap, ScheduleSpec

SCHEDULED_TIME: Final = "<aws.scheduler.scheduled-time>"
"""The text that the scheduler replaces by the time it starts a run for. It starts some runs twice;
both executions are then one run, and the second adopts the jobs of the first."""
_CAUGHT_UP: Final = " Runs before {} were started by its deployment."
_SINCE: Final = re.compile(re.escape(_CAUGHT_UP).replace(r"\{\}", r"(\d{4}-\d\d-\d\dT[\d:]{8}Z)"))
_FORGOTTEN: Final = timedelta(days=90)
"""The age at which Step Functions forgets executions."""
_MOST: Final = {"queue": 200, "allow": 16}
"""Runs that a deployment starts: those that wait for each other list all others, of which as many
fit into one answer; of those that don't, Airflow has so many at a time
(``max_active_runs_per_dag``)."""


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The moments between which a schedule was made whose missed runs its deployment started."""

    since: str
    """It started those before: ``2027-01-01T05:00:00Z``."""
    made: datetime | None = field(default=None, compare=False)
    """EventBridge starts those from then on; ``None``: it is still to be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """The runs that a schedule would have started before it was deployed."""

    pipeline: str
    start_arn: str
    schedule: ScheduleSpec
    input: Mapping[str, Json]
    """The input that the schedule gives its runs, the time as the scheduler is told it."""
    times: tuple[datetime, ...]
    """Those that have no run, the oldest first."""
    until: datetime | None
    """When they were looked for; a time that was over later has no run either. ``None``: their
    schedule is there already."""

    @property
    def name(self) -> str:
        """Their number, for the line that shows them."""
        return f"{counted(len(self.times), 'time')} of {self.pipeline} that were missed"

    def aspects(self) -> dict[str, Any]:
        """Return the runs, for showing."""
        return {run_of(self.pipeline, each): written(each) for each in self.times}

    def problem(self, policy: Overlap) -> str | None:
        """Return why they are too many for one deployment, if they are."""
        most, number = _MOST.get(policy, 1), len(self.times)
        if number <= most:
            return None
        return (
            f"{number} times since {self.schedule.start} have no run, and with overlap: {policy} a "
            f"deployment starts {most} at most; choose a later schedule.start, or deploy with "
            "--no-catch-up and start them with `orchestrate backfill`, which waits for each"
        )

    def requests(self, now: datetime) -> Iterator[dict[str, str]]:
        """Yield the requests that start the runs, and those of times that are over by now."""
        later = () if self.until is None else between(self.schedule, self.until, now)
        for each in (*self.times, *later):
            moment, run = written(each), run_of(self.pipeline, each)
            given = json.dumps(self.input, ensure_ascii=False).replace(SCHEDULED_TIME, moment)
            name = f"{run_token(run)}-1"
            yield {"stateMachineArn": self.start_arn, "name": name, "input": given}


def between(schedule: ScheduleSpec, begin: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the times of a schedule from one moment until before another."""
    moments = fires(schedule, begin - datetime.resolution)
    return takewhile(lambda moment: moment < end, moments)


def told(caught_up: CaughtUp | None) -> str:
    """Return the sentence of a schedule's description that says what was started before it."""
    return "" if caught_up is None else _CAUGHT_UP.format(caught_up.since)


def caught_up_in(description: str, made: datetime) -> CaughtUp | None:
    """Return what the description of a schedule says of its deployment."""
    match = _SINCE.search(description)
    return None if match is None else CaughtUp(match[1], made)


def unwatched(
    caught_up: CaughtUp | None, schedule: ScheduleSpec, now: datetime
) -> Iterator[datetime]:
    """Yield the times while a schedule was made: over for its deployment, too early for it."""
    made = None if caught_up is None else caught_up.made
    if caught_up is not None and made is not None and made > now - _FORGOTTEN:
        yield from between(schedule, datetime.fromisoformat(caught_up.since), made)


def run_of(pipeline: str, moment: datetime) -> str:
    """Return the name of a scheduled run, with the time as EventBridge Scheduler writes it."""
    return f"{pipeline}/{written(moment)}"


def written(moment: datetime) -> str:
    """Return a time as EventBridge Scheduler writes it."""
    return f"{moment.astimezone(UTC):{ISO}}"
