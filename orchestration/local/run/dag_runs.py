"""Run a workflow as an Airflow DAG and follow its task instances."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from orchestration.direct.progress import OnProgress, Progress, StepState
from orchestration.expressions import Json
from orchestration.graph import ParameterValue, Workflow
from orchestration.local import airflow as local
from orchestration.local.airflow import LocalAirflow, TaskState
from orchestration.local.run.report import Followed
from orchestration.runs.airflow.task_instances import OURS, steps, together

if TYPE_CHECKING:
    from orchestration.local.server.embedded import EmbeddedAws


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
        run = together(task.task_id, (t for t in tasks.values() if t.task_id == task.task_id))
        if task.task_id in OURS or run is None or seen.get(run.step) == run.state:
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
        steps=tuple(steps(ended.tasks)),
        log=ended.log,
    )
