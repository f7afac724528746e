"""What waits in a triggerer stops its job when a person says so, and only then."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from airflow.jobs.triggerer_job_runner import TriggerRunner

from orchestration.airflow.triggers import FollowTrigger
from orchestration.airflow.watches import watch_to_json
from orchestration.execution.effects import Request, Watch
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import training

CALL = training("train.job", job="job-1")


@pytest.fixture(autouse=True)
def _reachable(aws: ScriptedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in aws.environment().items():
        if name.startswith(("AWS_", "ORCHESTRATION_", "NO_PROXY", "no_proxy")):
            monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", "aws://")


def watch(name: str = "job-1", seconds: float = 60) -> Watch:
    def request(operation: str) -> Request:
        return Request("sagemaker", operation, {"TrainingJobName": name})

    return Watch(
        path=f"train.{name}",
        subject=f"CreateTrainingJob {name}",
        call=CALL,
        poll=request("DescribeTrainingJob"),
        stop=request("StopTrainingJob"),
        outputs={"own": 1},
        adopted=False,
        deadline=time.time() + seconds,
    )


CONNECTION = {
    "aws_conn_id": "aws_default",
    "region_name": None,
    "verify": None,
    "config": None,
}


def trigger(seconds: float = 60, *others: Watch, until: float | None = None) -> FollowTrigger:
    watches = [watch_to_json(w) for w in (watch(seconds=seconds), *others)]
    return FollowTrigger(watches=json.dumps(watches), connection=CONNECTION, until=until)


def fired(it: Any) -> dict[str, Any]:
    async def first() -> Any:
        return await anext(it.run())

    payload = asyncio.run(first()).payload
    verdicts = json.loads(payload["verdicts"])
    assert isinstance(verdicts, dict)
    return verdicts


def test_it_tells_the_outputs_and_no_more(aws: ScriptedAws) -> None:
    aws.jobs["job-1"] = ["InProgress", "InProgress", "Completed"]
    outputs = fired(trigger())["train.job-1"]["outputs"]
    assert outputs.keys() == {"arn", "artifacts", "started", "metrics", "spot"}
    assert aws.count() == {"DescribeTrainingJob": 3}


def test_it_is_made_again_from_what_it_says(aws: ScriptedAws) -> None:
    aws.jobs["job-1"] = ["Failed"]
    path, arguments = trigger().serialize()
    assert path == "orchestration.airflow.triggers.FollowTrigger"
    payload = fired(FollowTrigger(**arguments))["train.job-1"]
    assert payload["error"] == "JobFailed"
    assert "boom" in payload["cause"]


def test_a_poll_that_is_throttled_is_polled_again(aws: ScriptedAws) -> None:
    aws.jobs["job-1"] = ["Completed"]
    aws.faults += [("DescribeTrainingJob", 400, "ThrottlingException", False)] * 7
    aws.faults.append(("DescribeTrainingJob", 400, "ExpiredTokenException", False))
    assert "outputs" in fired(trigger())["train.job-1"]
    assert aws.count() == {"DescribeTrainingJob": 9}


def test_a_poll_that_is_refused_ends_it(aws: ScriptedAws) -> None:
    aws.faults.append(("DescribeTrainingJob", 400, "AccessDeniedException", False))
    assert fired(trigger())["train.job-1"]["error"] == "JobNotFollowed"


def test_out_of_time_it_stops_what_it_waits_for(aws: ScriptedAws) -> None:
    aws.jobs["job-1"] = ["InProgress"]
    assert fired(trigger(0.1))["train.job-1"]["error"] == "TimedOut"
    assert aws.count()["StopTrainingJob"] == 1


@pytest.mark.parametrize(("message", "stops"), [("user-action", 1), (None, 0)])
def test_a_person_stops_the_job_and_a_restart_does_not(
    aws: ScriptedAws, message: str | None, stops: int
) -> None:
    aws.jobs["job-1"] = ["InProgress"]

    async def cancelled() -> None:
        runner: Any = TriggerRunner()  # type: ignore[no-untyped-call]  # Airflow leaves it so
        running = asyncio.create_task(runner.run_trigger(1, trigger()))
        runner.triggers[1] = {"task": running, "is_watcher": False, "name": "t", "events": 0}
        while not aws.count()["DescribeTrainingJob"]:
            await asyncio.sleep(0.01)
        if message is None:
            running.cancel()
        else:
            runner.to_cancel.append(1)
            await runner.cancel_triggers()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())
    assert aws.count()["StopTrainingJob"] == stops


def test_a_stop_outlasts_the_cancellations_that_follow(aws: ScriptedAws) -> None:
    """A triggerer cancels a trigger again in each of its rounds, until the trigger is gone."""
    aws.jobs["job-1"] = ["InProgress"]
    aws.faults.append(("StopTrainingJob", 400, "ThrottlingException", False))

    async def cancelled() -> None:
        runner: Any = TriggerRunner()  # type: ignore[no-untyped-call]  # Airflow leaves it so
        running = asyncio.create_task(runner.run_trigger(1, trigger()))
        runner.triggers[1] = {"task": running, "is_watcher": False, "name": "t", "events": 0}
        while not aws.count()["DescribeTrainingJob"]:
            await asyncio.sleep(0.01)
        for stops in (0, 1):
            while aws.count()["StopTrainingJob"] < stops:
                await asyncio.sleep(0.001)
            runner.to_cancel.append(1)
            await runner.cancel_triggers()
        while not running.done():
            runner.to_cancel.append(1)
            await runner.cancel_triggers()
        async with asyncio.timeout(20):
            while aws.count()["StopTrainingJob"] < 2:
                await asyncio.sleep(0.01)

    asyncio.run(cancelled())
    assert aws.jobs["job-1"] == ["Stopped"]


def test_of_several_jobs_the_first_to_end_is_told(aws: ScriptedAws) -> None:
    aws.jobs |= {"job-1": ["InProgress"], "job-2": ["InProgress", "Completed"]}
    assert fired(trigger(60, watch("job-2"))).keys() == {"train.job-2"}


def test_a_pause_is_no_longer_than_it_has_to_be() -> None:
    began = time.monotonic()
    it = FollowTrigger(watches="[]", connection=CONNECTION, until=time.time() + 0.05)
    assert fired(it) == {}
    assert time.monotonic() - began > 0.04
