"""The dollars of what a run has acquired beside its jobs, for the time that it had it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from orchestration.expressions import Json
from orchestration.graph import Call, Guarded, Workflow, all_steps
from orchestration.pricing import services
from orchestration.pricing.assumptions import Assumptions
from orchestration.pricing.endpoints import CREATES, Endpoints
from orchestration.pricing.estimating import known_of
from orchestration.pricing.knowing import Known, Times
from orchestration.pricing.lines import Line

Spans = Mapping[str, tuple[datetime | None, datetime | None]]
"""Start and end of steps, by their names; no end unless they succeeded."""
_FILE_SYSTEM = ("fsx", "CreateFileSystem")


def acquired(
    workflow: Workflow, region: str, parameters: Mapping[str, Json], spans: Spans, at: datetime
) -> list[Line]:
    """Return the lines of file systems and temporary endpoints; `at`: now, or the run's end."""
    known = known_of(workflow, region, parameters, Assumptions())
    endpoints = Endpoints(workflow.graph)
    return [
        line
        for guard in all_steps(workflow.graph)
        if isinstance(guard, Guarded)
        for line in _of_guard(guard, known, endpoints, _hours(guard, spans, at))
    ]


def _of_guard(guard: Guarded, known: Known, endpoints: Endpoints, hours: float) -> Iterator[Line]:
    operation = guard.acquire.operation
    if not hours:
        return
    if (operation.service, operation.name) == _FILE_SYSTEM:
        yield _lived(services.lived(guard, known, hours))
    elif (operation.service, operation.name) == CREATES:
        for line in endpoints.tried(guard, known, Times(), lived=hours):
            yield _lived(line)


def _lived(line: Line) -> Line:
    lacks = "" if line.rate is not None and line.expected is not None else line.lacks
    return replace(line, lacks=lacks, notes=())


def _hours(guard: Guarded, spans: Spans, at: datetime) -> float:
    """Return the hours from the start of the creation to the end of the release, or until now."""
    began, created = spans.get(guard.acquire.name, (None, None))
    if began is None or created is None:
        return 0.0
    deletions = [
        spans.get(step.name, (None, None))[1]
        for step in all_steps(guard.cleanup)
        if isinstance(step, Call) and step.operation.name.startswith("Delete")
    ]
    ended = max((end for end in deletions if end is not None), default=at)
    return max(timedelta(), ended - began) / timedelta(hours=1)
