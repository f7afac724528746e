"""Operators on a worker: polling without a triggerer, being killed, being cleared."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from orchestration.airflow import dag
from orchestration.expressions import Item, join
from orchestration.graph import ForEach, Graph
from tests.airflow.conftest import Attempt, TaskInstance
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import file_system, training, workflow

STEP = training("train.job", job="base")


def test_without_a_triggerer_the_worker_polls(attempt: Attempt, aws: ScriptedAws) -> None:
    aws.statuses["base"] = ["InProgress", "InProgress", "Completed"]
    assert attempt(STEP)["arn"].endswith("/base")
    assert aws.count() == {"CreateTrainingJob": 1, "DescribeTrainingJob": 3}


def test_without_a_triggerer_too_what_takes_too_long_is_stopped(
    attempt: Attempt, aws: ScriptedAws
) -> None:
    aws.statuses["base"] = ["InProgress"]
    with pytest.raises(AirflowFailException, match="TimedOut"):
        attempt(training("train.job", job="base", timeout_s=0.1))
    assert aws.count()["StopTrainingJob"] == 1


def test_a_task_marked_failed_stops_its_job(attempt: Attempt, aws: ScriptedAws) -> None:
    aws.statuses["base"] = ["InProgress"]

    tasks: list[Any] = []

    def killed(operation: str, request: dict[str, Any]) -> None:
        if aws.count()["DescribeTrainingJob"] == 2:
            aws.watcher = None
            os.kill(os.getpid(), signal.SIGUSR1)

    # Airflow does it so: in a signal handler, in the middle of anything.
    signal.signal(signal.SIGUSR1, lambda *_: tasks[0].on_kill())
    aws.watcher = killed
    with pytest.raises(AirflowFailException, match="Aborted"):
        attempt(STEP, during=tasks.append)
    assert aws.count()["StopTrainingJob"] == 1


@pytest.mark.parametrize("state", [None, "scheduled", "queued", "running", "up_for_retry"])
def test_a_task_that_airflow_has_given_up_leaves_its_job_to_the_next_attempt(
    attempt: Attempt, aws: ScriptedAws, state: str | None
) -> None:
    aws.statuses["base"] = ["InProgress"]
    tasks: list[Any] = []

    def killed(operation: str, request: dict[str, Any]) -> None:
        if aws.count()["DescribeTrainingJob"] == 2:
            aws.watcher = None
            tasks[0].on_kill()

    aws.watcher = killed
    with pytest.raises(AirflowException, match="another attempt") as raised:
        attempt(STEP, during=tasks.append, state=state)
    assert not isinstance(raised.value, AirflowFailException)
    assert aws.count()["StopTrainingJob"] == 0


def test_the_last_attempt_leaves_no_job(attempt: Attempt, aws: ScriptedAws) -> None:
    aws.statuses["base"] = ["InProgress"]
    tasks: list[Any] = []

    def killed(operation: str, request: dict[str, Any]) -> None:
        if aws.count()["DescribeTrainingJob"] == 2:
            aws.watcher = None
            tasks[0].on_kill()

    aws.watcher = killed
    with pytest.raises(AirflowFailException, match="Aborted"):
        attempt(STEP, during=tasks.append, state="running", try_number=3)
    assert aws.count()["StopTrainingJob"] == 1


def test_what_is_killed_before_it_has_started_starts_nothing(
    attempt: Attempt, aws: ScriptedAws
) -> None:
    with pytest.raises(AirflowFailException, match="Aborted"):
        attempt(STEP, during=lambda task: task.on_kill())
    assert aws.calls == []


def test_a_setup_killed_in_doubt_releases_what_it_may_have_acquired(
    reachable: None, aws: ScriptedAws
) -> None:
    """Airflow leaves the teardown out where the setup has failed."""
    guard = file_system("fs.guard", Graph((training("train.job", job="base"),)))
    asked = replace(
        guard.acquire.operation,
        request={**guard.acquire.operation.request, "ClientRequestToken": "run"},
    )
    acquire = replace(guard.acquire, operation=asked)
    made = dag(workflow(replace(guard, acquire=acquire)))
    task: Any = made.get_task("fs.guard.create").prepare_for_execution()
    aws.faults.append(("CreateFileSystem", 500, "InternalServerError", True))
    context: Any = {
        "ti": TaskInstance(try_number=1, max_tries=2),
        "task": task,
        "dag": made,
        "run_id": "r",
        "params": {},
    }

    def killed(operation: str, request: dict[str, Any]) -> None:
        aws.watcher = None
        os.kill(os.getpid(), signal.SIGUSR1)

    signal.signal(signal.SIGUSR1, lambda *_: task.on_kill())
    aws.watcher = killed
    with pytest.raises(AirflowFailException, match="Aborted"):
        task.execute(context)
    assert [*aws.file_systems] == [*aws.tokens.values()]
    assert aws.count()["DeleteFileSystem"] == 1


def test_a_loop_that_is_killed_starts_nothing_else(attempt: Attempt, aws: ScriptedAws) -> None:
    body = replace(training("loop.job", job=join("n-", Item())), until=None, outputs={})
    loop = ForEach(
        name="loop.each",
        items=[str(n) for n in range(20)],
        body=Graph((body,)),
        collect={},
        max_concurrency=2,
    )
    tasks: list[Any] = []

    def killed(operation: str, request: dict[str, Any]) -> None:
        if aws.count()["CreateTrainingJob"] == 2:
            tasks[0].on_kill()

    aws.watcher = killed
    with pytest.raises(AirflowFailException, match="Aborted"):
        attempt(loop, during=tasks.append)
    # What is on its way when the task is killed arrives; two at a time is the loop's bound.
    assert 3 <= aws.count()["CreateTrainingJob"] <= 4


def test_a_retry_does_not_pay_for_a_job_that_failed(attempt: Attempt, aws: ScriptedAws) -> None:
    aws.jobs["base"] = ["Failed"]
    with pytest.raises(AirflowFailException, match="ended as Failed"):
        attempt(STEP, try_number=2)
    assert aws.jobs.keys() == {"base"}


def test_a_cleared_task_starts_a_new_job(attempt: Attempt, aws: ScriptedAws) -> None:
    aws.jobs |= {"base": ["Failed"], "base-2": ["Stopped"]}
    assert attempt(STEP, try_number=3, max_tries=4)["arn"].endswith("/base-3")
    assert [r["TrainingJobName"] for r in aws.of("CreateTrainingJob")] == [
        "base",
        "base-2",
        "base-3",
    ]
    assert aws.of("DescribeTrainingJob")[-1] == {"TrainingJobName": "base-3"}


def test_a_cleared_task_waits_for_what_is_still_stopping(
    attempt: Attempt, aws: ScriptedAws
) -> None:
    aws.jobs["base"] = ["Stopping", "Stopping", "Stopped"]
    assert attempt(STEP, try_number=2, max_tries=3)["arn"].endswith("/base-2")


def test_a_cleared_task_keeps_what_went_well(attempt: Attempt, aws: ScriptedAws) -> None:
    aws.jobs["base"] = ["InProgress", "Completed"]
    assert attempt(STEP, try_number=2, max_tries=3)["arn"].endswith("/base")
    assert aws.jobs.keys() == {"base"}


def test_a_retry_after_a_clear_goes_on_with_the_newest(attempt: Attempt, aws: ScriptedAws) -> None:
    aws.jobs |= {"base": ["Failed"], "base-2": ["Failed"], "base-3": ["InProgress", "Completed"]}
    assert attempt(STEP, try_number=4, max_tries=4)["arn"].endswith("/base-3")
    aws.jobs["base-3"] = ["Failed"]
    with pytest.raises(AirflowFailException):
        attempt(STEP, try_number=4, max_tries=4)
    assert aws.jobs.keys() == {"base", "base-2", "base-3"}


def test_a_name_has_room_for_its_number(attempt: Attempt, aws: ScriptedAws) -> None:
    name = "n" * 63
    aws.jobs[name] = ["Failed"]
    attempt(training("train.job", job=name), try_number=2, max_tries=3)
    assert aws.jobs.keys() == {name, "n" * 61 + "-2"}


def test_the_ui_shows_the_request_that_was_sent(attempt: Attempt, aws: ScriptedAws) -> None:
    shown: list[Any] = []
    attempt(
        training("train.job", HyperParameters={"x": "{{ 1 }}"}),
        during=lambda task: shown.append(task.config),
    )
    assert shown == aws.of("CreateTrainingJob")
