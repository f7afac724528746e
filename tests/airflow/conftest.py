from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestration.graph import Wait, Workflow
from orchestration.local.airflow import AirflowRun, LocalAirflow, TaskState
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import workflow

Run = Callable[..., AirflowRun]


@pytest.fixture(scope="session")
def server() -> Iterator[ScriptedAws]:
    with ScriptedAws() as aws:
        yield aws


@pytest.fixture(scope="session")
def airflow(server: ScriptedAws) -> Iterator[LocalAirflow]:
    with LocalAirflow() as airflow:
        started = airflow.run(workflow(Wait(name="wait.one", seconds=0)), aws=server)
        assert started.state == "success", started.log
        yield airflow


@pytest.fixture
def aws(server: ScriptedAws) -> ScriptedAws:
    server.clear()
    return server


@pytest.fixture
def run(airflow: LocalAirflow, aws: ScriptedAws, request: Any) -> Run:
    """Run a workflow with Airflow, under a run id of this test's own."""

    def run(it: Workflow, progress: list[TaskState] | None = None, **parameters: Any) -> AirflowRun:
        seen = [] if progress is None else progress
        return airflow.run(
            it,
            aws=aws,
            parameters=parameters,
            run_id=request.node.name.replace("[", "-").rstrip("]"),
            on_progress=seen.append,
        )

    return run


def states(run: AirflowRun) -> dict[str, str]:
    return {
        task.task_id if task.map_index < 0 else f"{task.task_id}[{task.map_index}]": task.state
        for task in run.tasks
    }
