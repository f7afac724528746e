from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.bases.operator import ExecutorSafeguard

from orchestration.airflow import dag
from orchestration.checks.references import outputs_of
from orchestration.expressions import Result
from orchestration.graph import Step, Workflow
from orchestration.local.airflow import AirflowRun, LocalAirflow, TaskState
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import workflow

Run = Callable[..., AirflowRun]
Attempt = Callable[..., Any]


@pytest.fixture(scope="session")
def server() -> Iterator[ScriptedAws]:
    with ScriptedAws() as aws:
        yield aws


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
    """The states of a run's tasks; the last look, which every run takes, left out."""
    return {
        task.task_id if task.map_index < 0 else f"{task.task_id}[{task.map_index}]": task.state
        for task in run.tasks
        if task.task_id.rpartition(".")[2] != "leftovers"
    }


@pytest.fixture
def reachable(aws: ScriptedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in aws.environment().items():
        if name.startswith(("AWS_", "ORCHESTRATION_", "NO_PROXY", "no_proxy")):
            monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", "aws://")
    monkeypatch.setattr(ExecutorSafeguard, "test_mode", True)


class TaskInstance(SimpleNamespace):
    """What operators ask of Airflow's."""

    map_index = -1
    state: str | None = "failed"
    """What Airflow's database says when the task is ended: by default, a person has marked it."""

    def get_task_states(self, **which: Any) -> dict[str, dict[str, str | None]]:
        [run_id], [task_id] = which["run_ids"], which["task_ids"]
        return {run_id: {task_id: self.state}}

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields, xcoms={})

    def xcom_push(self, key: str, value: Any) -> None:
        self.xcoms[key] = value


@pytest.fixture
def attempt(reachable: None) -> Attempt:
    """One attempt at a step, of a task that has had ``try_number - 1`` and was cleared or not."""

    def attempt(step: Step, *, during: Any = None, **ti: Any) -> Any:
        stage = step.name.partition(".")[0]
        outputs = outputs_of(step)
        shown = {name: Result(step.name, name) for name in outputs}
        made = dag(workflow(step, outputs=shown), deferrable=False)
        task: Any = made.get_task(stage).prepare_for_execution()
        context: Any = {
            "ti": TaskInstance(**{"try_number": 1, "max_tries": 2, **ti}),
            "task": task,
            "dag": made,
            "run_id": "r",
            "params": {},
        }
        task.render_template_fields(context)
        if during is not None:
            during(task)
        task.execute(context)
        return context["ti"].xcoms.get(step.name)

    return attempt
