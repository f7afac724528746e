"""A list of machines on a worker: killed anywhere, retried, cleared, it pays for one job."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from typing import Any, cast

import botocore
import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from packaging.version import Version

from orchestration.graph import ErrorPattern, Fallback
from tests.airflow.conftest import Attempt, Run
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import CAPACITY, QUOTA, falling_back, training, workflow

STEP = falling_back("train.job")
P5 = "ml.p5.48xlarge"


def created(aws: ScriptedAws) -> list[str]:
    return [request["TrainingJobName"] for request in aws.of("CreateTrainingJob")]


def no_capacity(aws: ScriptedAws, *names: str) -> None:
    for name in names:
        aws.reasons[name] = CAPACITY
        aws.jobs[name] = ["Failed"]


@pytest.mark.xdist_group("airflow")
def test_while_a_triggerer_waits_too(run: Run, aws: ScriptedAws) -> None:
    aws.statuses |= {"base-b": ["InProgress", "Failed"], "base-c": ["InProgress", "Completed"]}
    aws.statuses["base"] = ["InProgress", "InProgress", "Failed"]
    aws.reasons |= {"base": CAPACITY, "base-b": CAPACITY}
    ended = run(workflow(STEP, training("next.job", after=("train.job",))))
    assert ended.state == "success", (ended.error, ended.cause)
    assert created(aws)[:3] == ["base", "base-b", "base-c"]


@pytest.mark.parametrize("effective", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("victim", ["base-b", "base-c"])
def test_a_worker_that_is_killed_between_requests_pays_once(
    attempt: Attempt, aws: ScriptedAws, victim: str, effective: bool
) -> None:
    aws.reasons["base"] = CAPACITY
    aws.statuses["base-c"] = ["InProgress", "Completed"]
    aws.statuses["base-b"] = ["InProgress", "Completed" if victim == "base-b" else "Failed"]
    aws.statuses["base"] = ["InProgress", "Failed"]
    if victim == "base-c":
        aws.reasons["base-b"] = CAPACITY
    child = os.fork()
    if child == 0:
        try:
            attempt(STEP)
        finally:
            os._exit(0)

    def kill(operation: str, request: dict[str, Any]) -> None:
        if operation == "CreateTrainingJob" and request["TrainingJobName"] == victim:
            os.kill(child, signal.SIGKILL)
            aws.watcher = None
            if not effective:
                raise ConnectionAbortedError

    aws.watcher = kill
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert attempt(STEP, try_number=2)["arn"].endswith(f"/{victim}")
    expected = {"base", "base-b", "base-c"} if victim == "base-c" else {"base", "base-b"}
    assert aws.jobs.keys() == expected


def test_a_retry_does_not_ask_again_for_what_was_refused(
    attempt: Attempt, aws: ScriptedAws
) -> None:
    # The first attempt was refused the first machines, and died; now there would be some.
    aws.jobs["base-b"] = ["InProgress", "Completed"]
    assert attempt(STEP, try_number=2)["arn"].endswith("/base-b")
    assert aws.jobs.keys() == {"base-b"}


def test_a_refusal_is_not_believed_where_the_job_exists(attempt: Attempt, aws: ScriptedAws) -> None:
    aws.refusals[P5] = QUOTA
    aws.jobs["base"] = ["InProgress", "Completed"]
    assert attempt(STEP)["arn"].endswith("/base")
    assert created(aws) == ["base"]


def test_a_refusal_is_followed_by_the_next_request_whole(
    attempt: Attempt, aws: ScriptedAws
) -> None:
    aws.refusals[P5] = QUOTA
    assert attempt(STEP)["arn"].endswith("/base-b")
    assert STEP.fallback is not None
    sent = aws.of("CreateTrainingJob")
    assert sent == [STEP.operation.request, STEP.fallback.alternatives[0].operation.request]


@pytest.mark.parametrize("reason", ["AlgorithmError: " + CAPACITY, "InternalServerError: x"])
def test_another_failure_ends_it(attempt: Attempt, aws: ScriptedAws, reason: str) -> None:
    aws.statuses["base"] = ["InProgress", "Failed"]
    aws.reasons["base"] = reason
    with pytest.raises(AirflowFailException, match="JobFailed"):
        attempt(STEP)
    assert created(aws) == ["base"]


def test_a_retry_after_another_failure_pays_for_nothing(attempt: Attempt, aws: ScriptedAws) -> None:
    no_capacity(aws, "base")
    aws.jobs["base-b"] = ["Failed"]
    with pytest.raises(AirflowFailException, match="CreateTrainingJob base-b ended as Failed"):
        attempt(STEP, try_number=2)
    assert aws.jobs.keys() == {"base", "base-b"}


def test_a_retry_names_what_an_earlier_attempt_met(attempt: Attempt, aws: ScriptedAws) -> None:
    no_capacity(aws, "base-b", "base-c")
    with pytest.raises(AirflowFailException) as failed:
        attempt(STEP, try_number=2)
    assert "1 x ml.p5.48xlarge: CreateTrainingJob base was refused before; 1 x ml.p4d" in str(
        failed.value
    )
    assert str(failed.value).count("CapacityError") == 2


def test_a_cleared_task_starts_the_list_afresh(attempt: Attempt, aws: ScriptedAws) -> None:
    no_capacity(aws, "base", "base-b", "base-c")
    aws.statuses["base-2"] = ["Completed"]
    assert attempt(STEP, try_number=2, max_tries=3)["arn"].endswith("/base-2")
    assert created(aws) == ["base-2"]


def test_a_cleared_task_falls_back_under_names_of_its_own(
    attempt: Attempt, aws: ScriptedAws
) -> None:
    no_capacity(aws, "base")
    aws.jobs["base-b"] = ["Failed"]
    aws.reasons["base-2"] = CAPACITY
    aws.statuses |= {"base-2": ["InProgress", "Failed"], "base-b-2": ["Completed"]}
    assert attempt(STEP, try_number=2, max_tries=3)["arn"].endswith("/base-b-2")
    assert created(aws) == ["base-2", "base-b-2"]


def test_a_retry_after_a_clear_goes_on_with_the_newest(attempt: Attempt, aws: ScriptedAws) -> None:
    no_capacity(aws, "base", "base-b", "base-c", "base-2")
    aws.jobs["base-b-2"] = ["InProgress", "Completed"]
    assert attempt(STEP, try_number=3, max_tries=3)["arn"].endswith("/base-b-2")
    assert created(aws) == ["base-b-2"]


@pytest.mark.parametrize("running", ["base", "base-b"])
def test_a_cleared_task_keeps_what_runs(attempt: Attempt, aws: ScriptedAws, running: str) -> None:
    no_capacity(aws, *({"base"} - {running}))
    aws.jobs[running] = ["InProgress", "InProgress", "Completed"]
    assert attempt(STEP, try_number=2, max_tries=3)["arn"].endswith(f"/{running}")


def test_a_cleared_task_waits_for_what_is_still_stopping(
    attempt: Attempt, aws: ScriptedAws
) -> None:
    no_capacity(aws, "base")
    aws.jobs["base-b"] = ["Stopping", "Stopping", "Stopping", "Stopped"]
    assert attempt(STEP, try_number=2, max_tries=3)["arn"].endswith("/base-2")


def test_abort_stops_the_one_that_runs(attempt: Attempt, aws: ScriptedAws) -> None:
    aws.reasons["base"] = CAPACITY
    aws.statuses |= {"base-b": ["InProgress"], "base-c": ["InProgress"]}
    aws.statuses["base"] = ["InProgress", "Failed"]
    tasks: list[Any] = []

    def killed(operation: str, request: dict[str, Any]) -> None:
        if operation == "DescribeTrainingJob" and request["TrainingJobName"] == "base-b":
            aws.watcher = None
            os.kill(os.getpid(), signal.SIGUSR1)

    signal.signal(signal.SIGUSR1, lambda *_: tasks[0].on_kill())
    aws.watcher = killed
    with pytest.raises(AirflowFailException, match="Aborted"):
        attempt(STEP, during=tasks.append)
    assert aws.of("StopTrainingJob") == [{"TrainingJobName": "base-b"}]
    assert created(aws) == ["base", "base-b"]


def test_what_is_aborted_asks_for_nothing_else(attempt: Attempt, aws: ScriptedAws) -> None:
    aws.reasons["base"] = CAPACITY
    aws.statuses["base"] = ["InProgress", "InProgress", "Failed"]
    tasks: list[Any] = []

    def killed(operation: str, request: dict[str, Any]) -> None:
        # It finds no capacity at the very moment at which it is stopped.
        if operation == "StopTrainingJob":
            aws.watcher = None
            aws.jobs["base"] = ["Failed"]
            raise ConnectionAbortedError

    def aborted(operation: str, request: dict[str, Any]) -> None:
        if aws.count()["DescribeTrainingJob"] == 2:
            aws.watcher = killed
            os.kill(os.getpid(), signal.SIGUSR1)

    signal.signal(signal.SIGUSR1, lambda *_: tasks[0].on_kill())
    aws.watcher = aborted
    with pytest.raises(AirflowException, match="Aborted"):
        attempt(STEP, during=tasks.append)
    assert created(aws) == ["base"]


@pytest.mark.parametrize(
    "resources",
    [
        {
            "VolumeSizeInGB": 10,
            "InstanceGroups": [
                {"InstanceGroupName": "a", "InstanceType": "ml.g5.xlarge", "InstanceCount": 1},
                {"InstanceGroupName": "b", "InstanceType": "ml.c5.xlarge", "InstanceCount": 2},
            ],
        },
        pytest.param(
            {
                "VolumeSizeInGB": 10,
                "InstancePreferences": [{"InstanceType": "ml.g5.xlarge", "InstanceCount": 1}],
            },
            marks=pytest.mark.skipif(
                Version(botocore.__version__) < Version("1.42.93"),
                reason="this botocore does not know InstancePreferences",
            ),
        ),
    ],
    ids=["groups", "preferences"],
)
def test_clusters_without_a_count_of_their_own(
    attempt: Attempt, aws: ScriptedAws, resources: dict[str, Any]
) -> None:
    aws.statuses["base"] = ["InProgress", "Completed"]
    assert attempt(training("train.job", job="base", ResourceConfig=resources))
    [sent] = aws.of("CreateTrainingJob")
    assert sent["ResourceConfig"] == resources


WAITS = replace(
    STEP,
    fallback=replace(
        cast(Fallback, STEP.fallback),
        refusals=(ErrorPattern("ResourceLimitExceeded", "training job usage"),),
        wait_s=3600,
    ),
)


def lift(aws: ScriptedAws) -> None:
    """Free the quota of the first machines once the last ones have been refused."""

    def last_look(operation: str, request: dict[str, Any]) -> None:
        if operation == "DescribeTrainingJob" and request["TrainingJobName"] == "base-c":
            aws.watcher = None
            aws.refusals.pop(P5)

    aws.watcher = last_look


def test_waiting_for_capacity_holds_no_worker(run: Run, aws: ScriptedAws) -> None:
    aws.refusals |= dict.fromkeys((P5, "ml.p4d.24xlarge", "ml.g5.48xlarge"), QUOTA)
    aws.statuses["base"] = ["InProgress", "Completed"]
    lift(aws)
    progress: list[Any] = []
    ended = run(workflow(WAITS), progress)
    assert ended.state == "success", (ended.error, ended.cause)
    assert created(aws) == ["base", "base-b", "base-c", "base"]
    deferred = [task.state for task in progress if task.task_id == "train"].count("deferred")
    # For the pause, then for the job.
    assert deferred == 2


def test_a_worker_that_is_killed_while_it_waits_pays_once(
    attempt: Attempt, aws: ScriptedAws
) -> None:
    aws.refusals |= {"ml.p4d.24xlarge": QUOTA, "ml.g5.48xlarge": QUOTA}
    no_capacity(aws, "base")
    child = os.fork()
    if child == 0:
        try:
            os.environ["ORCHESTRATION_TIME_SCALE"] = "0.02"
            attempt(WAITS)
        finally:
            os._exit(0)

    def kill(operation: str, request: dict[str, Any]) -> None:
        if operation == "DescribeTrainingJob" and request["TrainingJobName"] == "base-c":
            aws.watcher = None
            # Its pause, which is 18 s here, begins with the answer.
            threading.Timer(0.3, os.kill, (child, signal.SIGKILL)).start()

    aws.watcher = kill
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert aws.jobs.keys() == {"base"}
    aws.statuses["base-2"] = ["InProgress", "Completed"]
    assert attempt(WAITS, try_number=2)["arn"].endswith("/base-2")
    assert aws.jobs.keys() == {"base", "base-2"}


def test_a_retry_counts_the_hours_from_the_first_job(attempt: Attempt, aws: ScriptedAws) -> None:
    machines = (P5, "ml.p4d.24xlarge", "ml.g5.48xlarge")
    aws.refusals |= dict.fromkeys(machines, QUOTA)
    no_capacity(aws, "base")
    aws.created["base"] = time.time() - 3600
    with pytest.raises(AirflowFailException, match="in 1 h of waiting"):
        attempt(WAITS, try_number=2)
    assert created(aws) == ["base", "base-b", "base-c"]


def test_a_task_that_is_ended_while_it_waits_asks_for_nothing_else(
    attempt: Attempt, aws: ScriptedAws
) -> None:
    aws.refusals |= dict.fromkeys((P5, "ml.p4d.24xlarge", "ml.g5.48xlarge"), QUOTA)
    tasks: list[Any] = []

    def killed(operation: str, request: dict[str, Any]) -> None:
        if operation == "DescribeTrainingJob" and request["TrainingJobName"] == "base-c":
            aws.watcher = None
            threading.Timer(0.3, tasks[0].on_kill).start()

    aws.watcher = killed
    with pytest.raises(AirflowFailException, match="Aborted"):
        attempt(WAITS, during=tasks.append)
    assert created(aws) == ["base", "base-b", "base-c"]
    assert not aws.jobs
