"""Operators on a worker: polling without a triggerer, being killed, being cleared."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.exceptions import AirflowFailException

from orchestration.airflow import dag
from orchestration.graph import Call
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import training, workflow

Attempt = Callable[..., Any]


@pytest.fixture(autouse=True)
def _reachable(aws: ScriptedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in aws.environment().items():
        if name.startswith(("AWS_", "ORCHESTRATION_", "NO_PROXY", "no_proxy")):
            monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", "aws://")
    monkeypatch.setattr(ExecutorSafeguard, "test_mode", True)


class TaskInstance(SimpleNamespace):
    """What operators ask of Airflow's."""

    map_index = -1

    def xcom_push(self, key: str, value: Any) -> None:
        self.left = (key, value)


@pytest.fixture
def attempt() -> Attempt:
    """One attempt at a step, of a task that has had ``try_number - 1`` and was cleared or not."""

    def attempt(call: Call, *, try_number: int = 1, max_tries: int = 2, during: Any = None) -> Any:
        made = dag(workflow(call), deferrable=False)
        task: Any = made.get_task(call.name).prepare_for_execution()
        context: Any = {
            "ti": TaskInstance(try_number=try_number, max_tries=max_tries),
            "task": task,
            "dag": made,
            "run_id": "r",
            "params": {},
        }
        task.render_template_fields(context)
        if during is not None:
            during(task)
        return task.execute(context)

    return attempt


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

    def killed_soon(task: Any) -> None:
        # Airflow does it so: in a signal handler, in the middle of anything.
        signal.signal(signal.SIGUSR1, lambda *_: task.on_kill())
        threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGUSR1)).start()

    with pytest.raises(AirflowFailException, match="Stopped"):
        attempt(STEP, during=killed_soon)
    assert aws.count()["StopTrainingJob"] == 1


def test_what_is_killed_before_it_has_started_is_stopped(
    attempt: Attempt, aws: ScriptedAws
) -> None:
    with pytest.raises(AirflowFailException, match="Stopped"):
        attempt(STEP, during=lambda task: task.on_kill())
    assert aws.jobs == {"base": ["Stopped"]}


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
