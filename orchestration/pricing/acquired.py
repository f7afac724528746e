"""The dollars of what a run has acquired beside its jobs, for the time that it has had it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from orchestration.expressions import Json, Tree
from orchestration.graph import Call, Guarded, Workflow, all_steps, stage_of
from orchestration.pricing import services
from orchestration.pricing.assumptions import Assumptions
from orchestration.pricing.endpoints import CREATES, Endpoints
from orchestration.pricing.estimating import known_of
from orchestration.pricing.knowing import Known, Times, times
from orchestration.pricing.lines import HOURS_A_MONTH, Line

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


def standing(
    workflow: Workflow,
    region: str,
    parameters: Mapping[str, Json],
    since: Mapping[str, datetime],
    at: datetime,
) -> list[Line]:
    """Return the lines of endpoints that outlive the run; `at`: now, or the run's end.

    `since`: when the endpoint of each stage stood; of those of one name, one is counted.
    """
    known = known_of(workflow, region, parameters, Assumptions())
    endpoints = Endpoints(workflow.graph)
    lines: list[Line] = []
    counted: list[Tree] = []
    for call in all_steps(workflow.graph):
        if not isinstance(call, Call) or stage_of(call.name) not in since:
            continue
        name, own = endpoints.name(call, known), [*endpoints.monthly(call, known, Times())]
        if own and (name is None or name not in counted):
            counted.append(name)
            lasted = (at - since[own[0].stage]) / timedelta(hours=1)
            lines += [_lived(_for_hours(line, lasted)) for line in own]
    return lines


class Timed(Protocol):
    """A step of a run, with its times."""

    @property
    def step(self) -> str:
        """Its name."""

    @property
    def state(self) -> str:
        """``succeeded``, or how else it stands."""

    @property
    def started(self) -> datetime | None:
        """Its start, if it has one."""

    @property
    def ended(self) -> datetime | None:
        """Its end, if it has one."""


def of_run(
    workflow: Workflow, region: str, parameters: Mapping[str, Json], steps: Sequence[Timed]
) -> list[Line]:
    """Return the lines of file systems and endpoints of a run that has ended, until its end."""
    ends = {each.step: each.ended for each in steps if each.ended and each.state == "succeeded"}
    if not ends:
        return []
    at = max(each.ended for each in steps if each.ended)
    spans = {each.step: (each.started, ends.get(each.step)) for each in steps}
    given = (workflow, region, parameters)
    return [*acquired(*given, spans, at), *standing(*given, stood(workflow, steps, {}), at)]


def stood(
    workflow: Workflow, steps: Sequence[Timed], stages: Mapping[str, datetime]
) -> dict[str, datetime]:
    """Return since when the endpoints that outlive a run have stood, by stage.

    They do so whatever fails afterwards, a smoke test for one. `stages`: the ends of those that
    have succeeded, which count where steps are told together, as tasks of Airflow are: whether such
    a stage has made the endpoint of a component, or found it, is not known then.
    """
    since: dict[str, datetime] = {}
    for stage, making in Endpoints(workflow.graph).makings.items():
        own = {each.step: each for each in steps if stage_of(each.step) == stage}
        settled = own.get(making.settled or making.creation)
        if settled is None:
            if stage in stages and making.creation not in own:
                since[stage] = stages[stage]
            continue
        required, made = own.get(making.required or ""), own.get(making.creation)
        failed = required is not None and required.state == "failed"
        found = making.is_shared and (made is None or made.state != "succeeded")
        if settled.state == "succeeded" and settled.ended and not failed and not found:
            since[stage] = settled.ended
    return since


def deploying(workflow: Workflow) -> frozenset[str]:
    """Return the stages that leave an endpoint."""
    return Endpoints(workflow.graph).stages


def _for_hours(line: Line, hours: float) -> Line:
    share = max(0.0, hours) / HOURS_A_MONTH
    what = line.what.replace("endpoint,", "endpoint that runs on,", 1)
    expected = times(line.expected, share)
    return replace(line, what=what, expected=expected, most=expected, period="run")


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
