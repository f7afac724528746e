"""Runs of a DAG that overlap, by each policy of the pipeline."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from orchestration.airflow import dag
from orchestration.errors import LocalError
from orchestration.graph import (
    Concluded,
    Graph,
    NotifySpec,
    Overlap,
    ScheduleSpec,
    TriggerSpec,
    Workflow,
)
from orchestration.local.airflow import AirflowRun, LocalAirflow, TaskState
from tests.airflow.conftest import TaskInstance, states
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import file_system, training, workflow

pytestmark = pytest.mark.xdist_group("airflow")
HOURLY = ScheduleSpec(cron="0 * * * *", timezone="UTC")


def overlapping(policy: Overlap | None, **fields: Any) -> Workflow:
    return replace(workflow(training("a.job")), overlap=policy, **fields)


@pytest.mark.parametrize(
    ("policy", "schedule", "most"),
    [
        ("queue", None, 1),
        ("allow", HOURLY, 16),
        ("skip", HOURLY, 16),
        ("stop_older", HOURLY, 16),
        (None, HOURLY, 1),
        (None, None, 16),
    ],
)
def test_runs_that_queue_are_active_one_at_a_time(
    policy: Overlap | None, schedule: ScheduleSpec | None, most: int
) -> None:
    made = dag(overlapping(policy, schedule=schedule))
    assert made.max_active_runs == most


def test_a_schedule_of_the_dag_file_counts_like_the_pipelines() -> None:
    assert dag(overlapping(None), schedule="@daily").max_active_runs == 1
    assert dag(overlapping("allow"), schedule="@daily").max_active_runs == 16
    assert dag(overlapping("queue"), max_active_runs=3).max_active_runs == 3


def test_one_run_at_a_time_looks_for_an_older_one() -> None:
    bounds = {
        policy: dag(overlapping(policy)).get_task("inputs").max_active_tis_per_dag
        for policy in ("allow", "queue", "skip")
    }
    assert bounds == {"allow": None, "queue": None, "skip": 1}


def test_a_run_is_skipped_while_an_older_one_is_under_way(
    airflow: LocalAirflow, aws: ScriptedAws
) -> None:
    """The older run is one whose Airflow dies in the middle, and that goes on later."""
    conclusion = Graph((training("over.job"),))
    body = Graph((training("a.job"),))
    concluded = Concluded(name="ended", body=body, conclusion=conclusion)
    notify = NotifySpec(on_success=("arn:aws:sns:us-east-1:123456789012:news",))
    pipeline = replace(workflow(concluded, name="skipping"), overlap="skip", notify=notify)

    def run(run_id: str) -> AirflowRun:
        return airflow.run(pipeline, aws=aws, run_id=run_id)

    def die(operation: str, request: dict[str, Any]) -> None:
        if operation == "DescribeTrainingJob":
            aws.watcher = None
            airflow.kill()

    aws.watcher = die
    with pytest.raises(LocalError, match="Airflow was killed"):
        run("first")
    started = aws.count()["CreateTrainingJob"]
    second = run("second")
    assert second.state == "success"
    assert states(second) == {
        "inputs": "success",
        **dict.fromkeys(("a", "ended", "over", "outputs"), "skipped"),
    }
    assert {t.state for t in second.tasks if t.task_id == "leftovers"} == {"skipped"}
    assert second.outputs is None
    assert aws.count()["CreateTrainingJob"] == started == 1
    assert "run first is under way, so this one is skipped" in second.log
    assert aws.count()["Publish"] == 0, "nobody is told of it"
    assert run("first").state == "success"
    [told] = aws.of("Publish")
    assert "first" in told["Message"]
    assert states(run("third"))["a"] == "success"


class Runs:
    """Runs of a DAG; one that is left is under way, and goes on when it is asked for again."""

    def __init__(self, airflow: LocalAirflow, aws: ScriptedAws, pipeline: Workflow | Path) -> None:
        self.airflow, self.aws, self.pipeline = airflow, aws, pipeline

    def run(self, run_id: str, **options: Any) -> AirflowRun:
        return self.airflow.run(self.pipeline, aws=self.aws, run_id=run_id, **options)

    def leave(self, run_id: str, task_id: str, state: str = "deferred", **options: Any) -> None:
        """Let a run go on until a task is deferred, or in another state."""

        def die(task: TaskState) -> None:
            if (task.task_id, task.state) == (task_id, state):
                self.airflow.kill()

        if state == "success":
            # The next task must not get on before the kill comes.
            self.aws.watcher = unreachable
        with pytest.raises(LocalError, match="Airflow was killed"):
            self.run(run_id, on_progress=die, **options)
        self.aws.watcher = None


def unreachable(operation: str, request: dict[str, Any]) -> None:
    raise ConnectionAbortedError(f"{operation} is not answered")


def superseded(run: AirflowRun, newer: str) -> bool:
    return (run.state, run.error, run.cause) == (
        "failed", "Superseded", f"A newer run took its place: {newer}"
    )  # fmt: skip


def test_an_older_run_is_stopped_and_cleaned_up_before_the_newer_one_pays(
    airflow: LocalAirflow, aws: ScriptedAws
) -> None:
    notify = NotifySpec(on_failure=("arn:aws:sns:us-east-1:123456789012:news",))
    around = file_system("a.scratch", Graph((training("a.job"),)))
    made = replace(workflow(around, name="stopping"), overlap="stop_older", notify=notify)
    runs = Runs(airflow, aws, made)
    aws.statuses["a-job"] = ["InProgress"]
    runs.leave("first", "a.job")
    runs.leave("second", "inputs")
    assert aws.count()["CreateFileSystem"] == aws.count()["CreateTrainingJob"] == 1
    first = runs.run("first")
    assert superseded(first, "second"), first.log
    assert aws.count()["StopTrainingJob"] == aws.count()["DeleteFileSystem"] == 1
    assert aws.count()["CreateTrainingJob"] == 1
    [told] = aws.of("Publish")
    message = json.loads(json.loads(told["Message"])["default"])
    assert (message["state"], message["detail"]["error"]) == ("ABORTED", "Superseded")
    runs.leave("second", "a.job")
    assert aws.count()["CreateTrainingJob"] == 2
    before = aws.count()
    assert superseded(runs.run("first"), "second"), "a person has cleared it meanwhile"
    after = aws.count() - before
    assert not {name for name in after if name.startswith("Create")}
    aws.jobs[aws.of("CreateTrainingJob")[1]["TrainingJobName"]] = ["Completed"]
    assert runs.run("second").state == "success"
    assert aws.count()["CreateTrainingJob"] == 2


def test_of_three_runs_the_newest_goes_on(airflow: LocalAirflow, aws: ScriptedAws) -> None:
    runs = Runs(airflow, aws, replace(overlapping("stop_older"), name="three"))
    aws.statuses["a-job"] = ["InProgress"]
    runs.leave("first", "a")
    runs.leave("second", "inputs")
    runs.leave("third", "inputs")
    second = runs.run("second")
    assert superseded(second, "third")
    assert states(second) == {
        "inputs": "failed",
        "a": "upstream_failed",
        "outputs": "upstream_failed",
    }
    runs.leave("third", "inputs")
    assert aws.count()["CreateTrainingJob"] == 1, "the first one has not ended"
    assert superseded(runs.run("first"), "third")
    aws.statuses.clear()
    assert runs.run("third").state == "success"
    assert aws.count()["CreateTrainingJob"] == 2
    cleared = runs.run("second")
    assert cleared.state == "success", "nothing newer is under way any more"


def test_the_same_event_stops_no_run(airflow: LocalAirflow, aws: ScriptedAws) -> None:
    """It may come twice, and a run that it has started is no older one."""
    trigger = TriggerSpec(
        pattern={"source": ["x"]}, queue="https://sqs.us-east-1.amazonaws.com/1/q"
    )
    made = replace(overlapping("stop_older"), name="twice_stopping", trigger=trigger)
    runs = Runs(airflow, aws, made)
    aws.statuses["a-job"] = ["InProgress"]
    runs.leave("first", "a", event={"id": "event-1"})
    again = runs.run("again", event={"id": "event-1"})
    assert (again.state, states(again)["a"]) == ("success", "skipped")
    assert "run first is under way, so this one is skipped (overlap: stop_older)" in again.log
    runs.leave("other", "inputs", event={"id": "event-2"})
    assert superseded(runs.run("first", event={"id": "event-1"}), "other")


def test_a_run_whose_tasks_do_not_defer_waits_without_a_worker(
    airflow: LocalAirflow, aws: ScriptedAws, tmp_path: Path
) -> None:
    """A task that kept its worker could keep the newer run's first one from it."""
    pickled = pickle.dumps(replace(overlapping("stop_older"), name="rescheduling"))
    file = tmp_path / "dag.py"
    file.write_text(
        "import pickle\nfrom orchestration.airflow import dag\n"
        f"dag(pickle.loads({pickled!r}), deferrable=False)\n"
    )
    runs = Runs(airflow, aws, file)
    runs.leave("first", "inputs", "success")
    runs.leave("second", "inputs", "up_for_reschedule")
    assert superseded(runs.run("first"), "second")
    assert aws.count()["CreateTrainingJob"] == 0
    second = runs.run("second")
    assert second.state == "success"
    assert {task.try_number for task in second.tasks} == {1}, "a look is no attempt"
    assert aws.count()["CreateTrainingJob"] == 1


class CountingInstance(TaskInstance):
    """One that Airflow tells which runs are under way."""

    running = ("own", "newer")

    def get_dr_count(self, *, run_ids: list[str] | None, **_: Any) -> int:
        return len({"own"} if run_ids is None else {*run_ids} & {*self.running})


@pytest.mark.usefixtures("reachable")
def test_a_job_that_is_followed_on_a_worker_is_stopped(
    aws: ScriptedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(*runs: str) -> None:
        value = json.dumps([[run, 0, None] for run in runs])
        monkeypatch.setenv("AIRFLOW_VAR_HAND_BUILT.BEGUN", value)

    def begins(operation: str, request: dict[str, Any]) -> None:
        if operation == "DescribeTrainingJob":
            begun("own", "newer")

    begun("own")
    aws.watcher = begins
    aws.statuses["a-job"] = ["InProgress"]
    made = dag(overlapping("stop_older"), deferrable=False)
    task: Any = made.get_task("a").prepare_for_execution()
    run = SimpleNamespace(clear_number=0, run_type="manual", start_date=None)
    ti = CountingInstance(try_number=1, max_tries=2)
    context: Any = {
        "ti": ti,
        "task": task,
        "dag": made,
        "dag_run": run,
        "run_id": "own",
        "params": {},
    }
    task.render_template_fields(context)
    with pytest.raises(AirflowFailException, match="Superseded: A newer run took its place: newer"):
        task.execute(context)
    assert aws.count()["CreateTrainingJob"] == aws.count()["StopTrainingJob"] == 1
