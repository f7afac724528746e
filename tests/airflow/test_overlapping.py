"""Runs of a DAG that overlap, by each policy of the pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestration.airflow import dag
from orchestration.errors import LocalError, UnsupportedError
from orchestration.graph import Concluded, Graph, NotifySpec, Overlap, ScheduleSpec, Workflow
from orchestration.local.airflow import AirflowRun, LocalAirflow
from tests.airflow.conftest import states
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import training, workflow

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


def test_no_task_can_stop_an_older_run() -> None:
    with pytest.raises(UnsupportedError, match="overlap: Airflow lets no task stop another run"):
        dag(overlapping("stop_older"))


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
