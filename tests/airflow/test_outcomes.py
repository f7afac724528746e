"""What follows the end of a run's tasks, however they have ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowSkipException

from orchestration.airflow.ending.outcome import OutcomeOperator
from orchestration.expressions import Item, Result, join, run_id
from orchestration.graph import Concluded, ForEach, Graph, Step, Workflow
from tests.airflow.conftest import Run, states
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import file_system, training, workflow

pytestmark = pytest.mark.xdist_group("airflow")

ENDING = join(*(Result("outcome", "state"), "|"), *(Result("outcome", "error"), "|"))


def concluded(*steps: Step, **further: Any) -> Workflow:
    after = training(
        "note.job", Environment={"ENDING": ENDING, "CAUSE": Result("outcome", "cause")}
    )
    step = Concluded(name="outcome", body=Graph(steps), conclusion=Graph((after,)))
    return workflow(step, **further)


def noted(aws: ScriptedAws) -> list[Any]:
    requests = aws.of("CreateTrainingJob")
    return [request["Environment"] for request in requests if "Environment" in request]


def test_a_failed_element_fails_the_run_and_gives_error_and_cause(
    run: Run, aws: ScriptedAws
) -> None:
    job = training("loop.job", job=join("element-", Item(), "-", run_id()))
    loop = ForEach(
        name="loop.each", items=["a", "b"], body=Graph((job,)), collect={}, max_concurrency=2
    )
    aws.statuses["element-b"] = ["Failed"]
    ended = run(concluded(loop))
    assert (ended.state, ended.error) == ("failed", "JobFailed")
    assert noted(aws) == [{"ENDING": "failed|JobFailed|", "CAUSE": ended.cause}]
    after = states(ended)
    assert (after["outcome"], after["note"]) == ("success", "success")
    assert after["outputs"] == "upstream_failed"


def test_what_is_acquired_is_released_before(run: Run, aws: ScriptedAws) -> None:
    it = concluded(file_system("fs.guard", Graph((training("train.job"),))))
    aws.statuses["train-job"] = ["Failed"]
    ended = run(it)
    assert (ended.state, ended.error) == ("failed", "JobFailed")
    order = [name for name, _ in aws.calls if name.startswith(("Create", "Delete"))]
    assert order == [
        "CreateFileSystem",
        "CreateTrainingJob",
        "DeleteFileSystem",
        "CreateTrainingJob",
    ]


def test_a_success_is_followed_and_shows_its_outputs(run: Run, aws: ScriptedAws) -> None:
    outputs = {"model": Result("train.job", "artifacts")}
    ended = run(concluded(training("train.job"), outputs=outputs))
    assert ended.state == "success"
    assert ended.outputs is not None
    assert noted(aws) == [{"ENDING": "succeeded||", "CAUSE": ""}]


def test_a_failure_after_a_success_fails_the_run(run: Run, aws: ScriptedAws) -> None:
    aws.statuses["note-job"] = ["Failed"]
    ended = run(concluded(training("train.job")))
    assert (ended.state, ended.error, ended.outputs) == ("failed", "JobFailed", None)


def test_nothing_follows_parameters_that_are_refused(run: Run, aws: ScriptedAws) -> None:
    ended = run(concluded(training("train.job"), parameters={"bucket": "b"}), bukcet="x")
    assert (ended.state, ended.error) == ("failed", "InvalidInput")
    after = states(ended)
    assert (after["outcome"], after["note"]) == ("skipped", "skipped")
    assert not aws.calls


class TaskInstance(SimpleNamespace):
    """What the operator asks of Airflow's."""

    max_tries = 2
    map_index = -1

    def get_task_states(self, **which: Any) -> dict[str, dict[str, str]]:
        return {run_id: self.states for run_id in which["run_ids"]}

    def xcom_pull(self, **which: Any) -> Any:
        return self.errors.get(which["task_ids"])

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed = {key: value}


def look(tasks: dict[str, str], errors: dict[str, Any], max_tries: int = 2) -> Any:
    """Perform the task in a run whose tasks have these states, and have left these errors."""
    task = OutcomeOperator(task_id="outcome", keeps=["outcome"], retries=2)
    ti = TaskInstance(states={"inputs": "success", **tasks}, errors=errors, max_tries=max_tries)
    dag = SimpleNamespace(dag_id="p", task_dict=dict.fromkeys(["train", "loop", "late"]))
    context: Any = {"ti": ti, "dag": dag, "run_id": "r", "task": task}
    task.execute(context)
    return ti.pushed["outcome"]


def test_a_task_that_died_has_left_no_error() -> None:
    ending = look({"train": "failed", "late": "upstream_failed"}, {})
    assert (ending["state"], ending["error"]) == ("failed", "TaskFailed")
    assert ending["cause"] == "task train ended as failed, and left no error"


def test_the_first_error_in_the_order_of_the_dag_counts() -> None:
    errors = {
        "late": {"error": "Late", "cause": "l"},
        "loop": [None, {"error": "JobFailed", "cause": "c"}],
    }
    ending = look({"late": "failed", "loop_1": "failed", "loop_0": "success"}, errors)
    assert (ending["error"], ending["cause"]) == ("JobFailed", "c")


def test_each_time_that_a_person_clears_it_is_another_attempt() -> None:
    assert look({"train": "success"}, {})["attempt"] == 1
    assert look({"train": "success"}, {}, max_tries=3)["attempt"] == 2


def test_a_run_that_was_refused_is_followed_by_nothing() -> None:
    with pytest.raises(AirflowSkipException):
        look({"inputs": "failed", "train": "upstream_failed"}, {})


def test_a_setup_that_failed_gives_its_error(run: Run, aws: ScriptedAws) -> None:
    aws.faults.append(("CreateFileSystem", 400, "BadRequest", False))
    ended = run(concluded(file_system("fs.guard", Graph((training("train.job"),)))))
    assert (ended.state, ended.error) == ("failed", "BadRequest")
    assert noted(aws) == [{"ENDING": "failed|BadRequest|", "CAUSE": ended.cause}]
