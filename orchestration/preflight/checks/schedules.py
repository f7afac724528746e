"""Schedules: the time between two runs, against the time that a run may take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, pairwise
from math import ceil, inf
from typing import Any, Final

from orchestration.graph import (
    Call,
    Concluded,
    ForEach,
    Graph,
    Guarded,
    Overlap,
    ScheduleSpec,
    Step,
    Wait,
    bodies,
    upstream,
)
from orchestration.graph.ordering import layered
from orchestration.pipeline.schedules.firing import fires
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding
from orchestration.preflight.requests import Request

_SOURCES: Final = ("https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html",)
_FIRES: Final = 400
"""Fire times that are looked at: more than a year of days, with both changes of the clock."""
_FROM: Final = datetime(2026, 1, 1, tzinfo=UTC)
_WHY: Final[Mapping[Overlap, str]] = {
    "allow": "overlap: allow lets two runs pay side by side, share quotas, and deploy to the same "
    "endpoint",
    "queue": "overlap: queue lets the next run wait, so that it starts late, and more and more "
    "wait if that goes on",
    "skip": "overlap: skip ends the next run without doing anything",
    "stop_older": "overlap: stop_older stops the run before its end, and what it paid is lost",
}
_LIMITS: Final = (
    ("StoppingCondition", "MaxWaitTimeInSeconds"),
    ("StoppingCondition", "MaxRuntimeInSeconds"),
    ("TrainingJobDefinition", "StoppingCondition", "MaxRuntimeInSeconds"),
)
"""Places of the longest time of a job in its request; that of spot counts the wait, too."""


def schedules(examination: Examination) -> Iterator[Finding]:
    """Yield the schedule whose next run may start before the one before has ended."""
    schedule = examination.workflow.schedule
    if schedule is None:
        return
    requests = {each.step: each for each in reversed(examination.requests)}
    longest_s = _longest(examination.workflow.graph, requests)
    interval_s = _shortest(schedule)
    if longest_s > interval_s:
        yield Finding(
            check="schedules",
            severity="may fail",
            where="schedule.cron" if schedule.cron is not None else "schedule.rate",
            what=f"{schedule.cron or schedule.rate} starts a run every {_spoken(interval_s)}, and "
            f"a run may take {_spoken(longest_s)} by the limits of its jobs",
            why=_WHY[examination.workflow.overlapping],
            when="a run takes longer than the time to the next",
            mend="lower max_runtime_s of the stages, or let it run less often",
            sources=_SOURCES,
        )


def _shortest(schedule: ScheduleSpec) -> float:
    """Return the least time between two fire times."""
    times = fires(replace(schedule, end=None), _FROM)
    gaps = (later - earlier for earlier, later in pairwise(islice(times, _FIRES)))
    return min((gap.total_seconds() for gap in gaps), default=inf)


def _longest(graph: Graph, requests: Mapping[str, Request]) -> float:
    """Return the seconds of the longest way through a graph."""
    before = upstream(graph)
    own = {step.name: _seconds(step, requests) for step in graph.steps}
    ends: dict[str, float] = {}
    for name in layered(before):
        ends[name] = own[name] + max((ends[each] for each in before[name]), default=0.0)
    return max(ends.values(), default=0.0)


def _seconds(step: Step, requests: Mapping[str, Request]) -> float:
    if isinstance(step, Call):
        return _of_call(step, requests.get(step.name))
    if isinstance(step, Wait):
        return float(step.seconds) if isinstance(step.seconds, int | float) else 0.0
    inside = [_longest(body, requests) for body in bodies(step)]
    if isinstance(step, ForEach):
        count = len(step.items) if isinstance(step.items, list | tuple) else step.at_most or 1
        return inside[0] * ceil(count / step.max_concurrency)
    # Guards and conclusions have their parts one after the other; branches are side by side.
    if isinstance(step, Concluded | Guarded):
        return sum(inside)
    return max(inside, default=0.0)


def _of_call(step: Call, request: Request | None) -> float:
    limits: list[Any] = [] if request is None else [request.at(*path) for path in _LIMITS]
    known = next((each for each in limits if isinstance(each, int | float)), None)
    if known is not None:
        return float(known)
    return 0.0 if step.until is None or step.until.person is not None else step.until.timeout_s


def _spoken(seconds: float) -> str:
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {word}"
    return f"{seconds:.0f} s"
