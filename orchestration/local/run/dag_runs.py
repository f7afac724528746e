"""Run a workflow as an Airflow DAG and follow its task instances."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from orchestration.direct.progress import OnProgress, Progress, StepRun, StepState
from orchestration.expressions import Json
from orchestration.graph import ParameterValue, Workflow
from orchestration.local import airflow as local
from orchestration.local.airflow import LocalAirflow, TaskState
from orchestration.local.run.report import Followed

if TYPE_CHECKING:
    from orchestration.local.server.embedded import EmbeddedAws

_STATES: Mapping[str, StepState] = {
    "success": "succeeded",
    "failed": "failed",
    "skipped": "skipped",
    "running": "running",
    "deferred": "running",
    "up_for_retry": "running",
    "up_for_reschedule": "running",
}
"""Tasks in any other state have not started, and ``upstream_failed`` ones never will."""
_OURS = ("inputs", "outputs")
"""Tasks of no stage."""


def follow(
    aws: EmbeddedAws,
    workflow: Workflow,
    values: Mapping[str, Json],
    run_id: str,
    on_progress: OnProgress,
    airflow: LocalAirflow | None = None,
) -> Followed:
    """Run the workflow's DAG once, in its own Airflow, and follow it to its end."""
    began = time.monotonic()
    tasks: dict[tuple[str, int], TaskState] = {}
    seen: dict[str, StepState] = {}

    def changed(task: TaskState) -> None:
        tasks[task.task_id, task.map_index] = task
        run = _together(task.task_id, (t for t in tasks.values() if t.task_id == task.task_id))
        if task.task_id in _OURS or run is None or seen.get(run.step) == run.state:
            return
        seen[run.step] = run.state
        on_progress(Progress(run.step, run.state, time.monotonic() - began))

    # This call starts the run: a schedule would require default values for all parameters, and an
    # event would give some.
    start = local.run if airflow is None else airflow.run
    ended = start(
        replace(workflow, schedule=None, trigger=None),
        aws=aws,
        parameters=cast("Mapping[str, ParameterValue]", values),
        run_id=run_id,
        on_progress=changed,
        time_scale=aws.time_scale,
    )
    return Followed(
        identity=f"{workflow.name}/{run_id}",
        state="succeeded" if ended.state == "success" else "failed",
        error=ended.error,
        cause=ended.cause,
        outputs=ended.outputs,
        steps=tuple(_runs(ended.tasks)),
        log=ended.log,
    )


def _runs(tasks: Iterable[TaskState]) -> Iterable[StepRun]:
    by_task: dict[str, list[TaskState]] = {}
    for task in tasks:
        by_task.setdefault(task.task_id, []).append(task)
    for task_id, own in by_task.items():
        run = _together(task_id, own)
        if task_id not in _OURS and run is not None:
            yield run


def _together(step: str, tasks: Iterable[TaskState]) -> StepRun | None:
    """Return the instances of a task as one; None where none of them has begun."""
    begun = [task for task in tasks if task.state in _STATES]
    if not begun:
        return None
    states = {_STATES[task.state] for task in begun}
    order: tuple[StepState, ...] = ("running", "failed", "succeeded", "skipped")
    state = next(state for state in order if state in states)
    ran = [task for task in begun if task.state != "skipped"]
    starts = [datetime.datetime.fromisoformat(task.start) for task in ran if task.start]
    ends = [datetime.datetime.fromisoformat(task.end) for task in ran if task.end]
    return StepRun(step, state, min(starts, default=None), max(ends, default=None))
