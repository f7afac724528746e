"""However often attempts die, one run pays for one job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestration.expressions import Result
from orchestration.graph import Clock, Within
from orchestration.local.airflow import AirflowRun
from tests.airflow.conftest import Run, states
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import training, workflow

# One Airflow for all of them.
pytestmark = pytest.mark.xdist_group("airflow")


def tries(ended: AirflowRun, task_id: str) -> int:
    return next(task.try_number for task in ended.tasks if task.task_id == task_id)


def test_a_lost_response_is_adopted(run: Run, aws: ScriptedAws) -> None:
    aws.faults.append(("CreateTrainingJob", 500, "InternalFailure", True))
    aws.statuses["train"] = ["InProgress", "Completed"]
    ended = run(workflow(training("train.job")))
    assert ended.state == "success", (ended.error, ended.cause)
    first, second = aws.of("CreateTrainingJob")
    assert first == second
    assert len(aws.jobs) == 1
    assert tries(ended, "train") == 1


def test_a_task_whose_calls_all_failed_follows_what_the_first_one_started(
    run: Run, aws: ScriptedAws
) -> None:
    fault = ("CreateTrainingJob", 503, "ServiceUnavailable")
    aws.faults += [(*fault, True), (*fault, False), (*fault, False)]
    ended = run(workflow(training("train.job")))
    assert ended.state == "success", (ended.error, ended.cause)
    assert aws.count()["CreateTrainingJob"] == 3
    assert len(aws.jobs) == 1
    assert tries(ended, "train") == 1


def test_a_retried_task_adopts_what_the_first_try_started(run: Run, aws: ScriptedAws) -> None:
    aws.faults += [("CreateTrainingJob", 503, "ServiceUnavailable", True)] * 3
    aws.faults += [("DescribeTrainingJob", 400, "ResourceNotFound", False)]
    ended = run(workflow(training("train.job")))
    assert ended.state == "success", (ended.error, ended.cause)
    assert len(aws.jobs) == 1
    assert tries(ended, "train") == 2


def test_a_try_that_is_asked_for_is_started_once_however_attempts_end(
    run: Run, aws: ScriptedAws
) -> None:
    job = training("train.job")
    assert job.adopt is not None
    job = replace(job, adopt=replace(job.adopt, name_field="TrainingJobName", tries=3))
    aws.statuses |= {"-2": ["InProgress", "Completed"], "train": ["Failed"]}
    # The response of the first creation is lost, and then the attempt's own retries are used up.
    aws.faults += [("CreateTrainingJob", 503, "ServiceUnavailable", True)] * 3
    aws.faults += [("DescribeTrainingJob", 400, "ResourceNotFound", False)]
    ended = run(workflow(job))
    assert ended.state == "success", (ended.error, ended.cause)
    assert [name.rpartition("-")[2] for name in aws.jobs][1:] == ["2"]
    assert len(aws.jobs) == 2
    assert tries(ended, "train") == 2


def test_a_retried_task_counts_from_the_clock_of_the_run(run: Run, aws: ScriptedAws) -> None:
    within = Within(since=Result("train.clock", "at"), seconds=2)
    aws.statuses["train"] = ["InProgress"]
    aws.faults += [("CreateTrainingJob", 503, "ServiceUnavailable", True)] * 3
    aws.faults += [("DescribeTrainingJob", 400, "ResourceNotFound", False)]
    job = replace(training("train.job"), within=within)
    ended = run(workflow(Clock(name="train.clock"), job))
    assert (ended.state, ended.error) == ("failed", "TimedOut")
    assert "did not end within the 2 s of stage train; it was told to stop" in str(ended.cause)
    assert (len(aws.jobs), aws.count()["StopTrainingJob"]) == (1, 1)
    assert (tries(ended, "train.clock"), tries(ended, "train.job")) == (1, 2)


def test_throttling_passes_and_a_refusal_does_not(run: Run, aws: ScriptedAws) -> None:
    aws.faults.append(("CreateTrainingJob", 400, "ThrottlingException", False))
    aws.faults.append(("DescribeTrainingJob", 400, "ThrottlingException", False))
    assert run(workflow(training("train.job"))).state == "success"
    aws.clear()
    aws.faults.append(("CreateTrainingJob", 400, "AccessDeniedException", False))
    ended = run(workflow(training("other.job")))
    assert (ended.state, ended.error) == ("failed", "AccessDenied")
    assert aws.count() == {"CreateTrainingJob": 1}
    assert tries(ended, "other") == 1


def test_a_job_that_fails_is_not_tried_again(run: Run, aws: ScriptedAws) -> None:
    aws.statuses["train"] = ["InProgress", "Failed"]
    ended = run(workflow(training("train.job")))
    assert tries(ended, "train") == 1
    assert aws.count()["CreateTrainingJob"] == 1


def test_what_takes_too_long_is_stopped(run: Run, aws: ScriptedAws) -> None:
    aws.statuses["train"] = ["InProgress"]
    ended = run(workflow(training("train.job", timeout_s=0.2)))
    assert (ended.state, ended.error) == ("failed", "TimedOut")
    assert "0.2 s" in str(ended.cause)
    assert aws.count()["StopTrainingJob"] == 1
    assert states(ended)["outputs"] == "upstream_failed"
