"""The steps of a run on Airflow: the instances of each of its tasks taken together."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from orchestration.direct.progress import StepRun, StepState

_STATES: Final[Mapping[str, StepState]] = {
    "success": "succeeded",
    "failed": "failed",
    "skipped": "skipped",
    "running": "running",
    "deferred": "running",
    "up_for_retry": "running",
    "up_for_reschedule": "running",
}
"""Tasks in any other state have not started, and ``upstream_failed`` ones never will."""
ENDED: Final = ("success", "failed", "skipped", "upstream_failed", "removed")
_TO_COME: Final = ("", "scheduled", "queued", "restarting")
OURS: Final = ("inputs", "outputs")
"""Tasks of no stage."""


class TaskInstance(Protocol):
    """A task instance, as Airflow tells of it."""

    @property
    def task_id(self) -> str:
        """Its task: ``evaluate.each``."""

    @property
    def state(self) -> str:
        """As Airflow calls it; empty before it is scheduled."""

    @property
    def start(self) -> str | None:
        """A time in ISO 8601."""

    @property
    def end(self) -> str | None:
        """A time in ISO 8601."""

    @property
    def performed(self) -> Mapping[str, str]:
        """The states of steps that it performed of several stages; those have no tasks."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A task instance, or a step that one has performed."""

    task_id: str
    state: str
    start: str | None
    end: str | None
    performed: Mapping[str, str] = field(default_factory=dict)


def steps(instances: Iterable[TaskInstance]) -> Iterator[StepRun]:
    """Yield the tasks of stages that have begun, and the steps that some of them performed."""
    by_task: dict[str, list[TaskInstance]] = {}
    for instance in instances:
        by_task.setdefault(instance.task_id, []).append(instance)
    for step in [step for own in by_task.values() for step in _performed(own)]:
        by_task.setdefault(step.task_id, []).append(step)
    for task_id, own in by_task.items():
        run = together(task_id, own)
        if task_id not in OURS and run is not None:
            yield run


def _performed(instances: Collection[TaskInstance]) -> Iterator[Instance]:
    """Yield the steps that the instances of one task have performed of several stages.

    Those that have not ended still perform what the others have.
    """
    ended = [each for each in instances if each.state in ENDED]
    for each in ended:
        for name, state in each.performed.items():
            yield Instance(name, state, each.start, each.end)
    if len(ended) < len(instances):
        for name in sorted({name for each in ended for name in each.performed}):
            yield Instance(name, "running", None, None)


def to_come(instances: Iterable[TaskInstance], last: Collection[str]) -> Iterator[str]:
    """Yield the tasks that still will begin, or begin again.

    But for ``last``, which release what a stage has acquired once the stages that use it are done.
    """
    for instance in instances:
        if instance.state in _TO_COME and instance.task_id not in last:
            yield instance.task_id


def together(step: str, instances: Iterable[TaskInstance]) -> StepRun | None:
    """Return the instances of a task as one; None where none of them has begun."""
    begun = [each for each in instances if each.state in _STATES]
    if not begun:
        return None
    states = {_STATES[each.state] for each in begun}
    order: tuple[StepState, ...] = ("running", "failed", "succeeded", "skipped")
    state = next(state for state in order if state in states)
    ran = [each for each in begun if each.state != "skipped"]
    starts = [datetime.datetime.fromisoformat(each.start) for each in ran if each.start]
    ends = [datetime.datetime.fromisoformat(each.end) for each in ran if each.end]
    return StepRun(step, state, min(starts, default=None), max(ends, default=None))
