"""When all tasks of a run have ended, none of its jobs goes on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from orchestration.airflow import dag
from orchestration.airflow.leftovers import LeftoversOperator
from orchestration.expressions.evaluate import run_token
from orchestration.graph import Wait
from tests.airflow.conftest import Run
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import training, workflow

pytestmark = pytest.mark.xdist_group("airflow")

OWN = run_token("p/r")
NAME = f"p-train-{OWN}"


class TaskInstance(SimpleNamespace):
    """What the operator asks of Airflow's."""

    def get_task_states(self, **which: Any) -> dict[str, dict[str, str]]:
        assert which["dag_id"] == "p"
        return {run_id: self.states for run_id in which["run_ids"]}

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed = {key: value}


def look(**states: str) -> TaskInstance:
    """Perform the task in a run whose tasks have these states."""
    task = LeftoversOperator(task_id="leftovers", jobs={"Training": ["p-train-"]})
    ti = TaskInstance(states=states)
    context: Any = {"ti": ti, "dag": SimpleNamespace(dag_id="p"), "run_id": "r"}
    task.execute(context)
    return ti


def running(aws: ScriptedAws, name: str, run: str) -> None:
    aws.jobs[name] = ["InProgress"]
    aws.tags[name] = [{"Key": "orchestration:run", "Value": run}]


@pytest.mark.usefixtures("reachable")
def test_a_job_that_still_runs_is_stopped_and_nobody_elses(aws: ScriptedAws) -> None:
    running(aws, NAME, OWN)
    running(aws, f"{NAME}-2", OWN)
    running(aws, "p-train-other", run_token("p/another run"))
    running(aws, f"another-p-train-{OWN}", OWN)
    look(train="failed", outputs="upstream_failed")
    stopped = [request["TrainingJobName"] for request in aws.of("StopTrainingJob")]
    assert stopped == [NAME, f"{NAME}-2"]


@pytest.mark.usefixtures("reachable")
def test_a_good_end_costs_one_question_for_each_kind_of_job(aws: ScriptedAws) -> None:
    aws.jobs[NAME] = ["Completed"]
    look(train="success", outputs="running")
    assert [name for name, _ in aws.looks] == ["ListTrainingJobs"]
    assert not aws.calls


@pytest.mark.usefixtures("reachable")
def test_a_run_that_has_started_no_job_asks_nothing(aws: ScriptedAws) -> None:
    look(train="upstream_failed", outputs="upstream_failed")
    assert not aws.looks


@pytest.mark.usefixtures("reachable")
def test_a_connection_that_may_not_list_jobs_fails_no_run(aws: ScriptedAws) -> None:
    aws.faults.append(("ListTrainingJobs", 400, "AccessDeniedException", False))
    look(train="success", outputs="success")


@pytest.mark.usefixtures("reachable")
def test_trouble_is_for_another_attempt(aws: ScriptedAws) -> None:
    aws.faults.append(("ListTrainingJobs", 400, "ThrottlingException", False))
    with pytest.raises(AirflowException) as caught:
        look(train="failed", outputs="upstream_failed")
    assert not isinstance(caught.value, AirflowFailException)


@pytest.mark.usefixtures("reachable")
def test_a_run_that_was_marked_as_failed_is_aborted(aws: ScriptedAws) -> None:
    running(aws, NAME, OWN)
    with pytest.raises(
        AirflowFailException, match=rf"Aborted: .* marked as failed; stopped \w+ {NAME}"
    ):
        look(train="failed", outputs="skipped")


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize("train", ["success", "skipped"])
def test_a_run_that_was_marked_as_successful_is_not(train: str) -> None:
    look(train=train, outputs="skipped")


def test_the_last_look_is_a_teardown_beside_the_outputs() -> None:
    made = dag(
        workflow(training("train.job"), training("other.job"), Wait(name="a.wait", seconds=0))
    )
    task = made.get_task("leftovers")
    assert task.is_teardown
    assert task.on_failure_fail_dagrun
    assert task.upstream_task_ids == {"train", "other"}
    assert not task.downstream_task_ids


def test_a_pipeline_that_starts_no_job_has_none() -> None:
    assert "leftovers" not in dag(workflow(Wait(name="a.wait", seconds=0))).task_ids


def test_a_run_takes_a_last_look_when_its_tasks_have_ended(run: Run, aws: ScriptedAws) -> None:
    """What somebody marked as successful runs on: here, a second job of the run's own."""

    def also(operation: str, request: dict[str, Any]) -> None:
        if operation == "CreateTrainingJob":
            name = request["TrainingJobName"]
            running(aws, f"{name}-2", name.rpartition("-")[2])

    aws.watcher = also
    done = run(workflow(training("train.job")))
    assert done.state == "success", done.log
    assert {task.task_id: task.state for task in done.tasks}["leftovers"] == "success"
    [stopped] = aws.of("StopTrainingJob")
    assert stopped["TrainingJobName"].endswith("-2")
    assert [name for name, _ in aws.looks] == ["ListTrainingJobs", "ListTags"]
