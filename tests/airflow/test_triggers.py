"""What waits in a triggerer stops its job when a person says so, and only then."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.jobs.triggerer_job_runner import TriggerRunner
from airflow.sdk.exceptions import ErrorType
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import (
    ErrorResponse,
    GetTaskStates,
    GetVariable,
    TaskStatesResult,
    VariableResult,
)

from orchestration.airflow import versions
from orchestration.airflow.clients import Clients
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


ROLE = "arn:aws:iam::444455556666:role/registry"


def as_role(watched: Watch) -> Watch:
    return replace(watched, poll=replace(watched.poll, role=ROLE))


@pytest.mark.parametrize("asks", ["the triggerer", "a worker"])
def test_a_role_is_assumed_again_before_its_session_ends(aws: ScriptedAws, asks: str) -> None:
    aws.jobs["job-1"] = ["InProgress", "InProgress", "Completed"]
    # Credentials are renewed from ten minutes before their end on.
    aws.sessions += [60, 3600]
    watched = as_role(watch())
    if asks == "a worker":
        clients = Clients(CONNECTION)
        for _ in range(3):
            clients.send(watched.poll)
    else:
        written = json.dumps([watch_to_json(watched)])
        fired(FollowTrigger(watches=written, connection=CONNECTION))
    assert [request["RoleArn"] for request in aws.of("AssumeRole")] == [ROLE, ROLE]
    assert [key for _, key in aws.signers] == ["session-1", "session-2", "session-2"]


def test_a_role_that_may_not_be_assumed_ends_it(aws: ScriptedAws) -> None:
    aws.faults.append(("AssumeRole", 403, "AccessDenied", False))
    written = json.dumps([watch_to_json(as_role(watch()))])
    ended = fired(FollowTrigger(watches=written, connection=CONNECTION))["train.job-1"]
    assert ended["error"] == "JobNotFollowed"
    assert aws.count()["DescribeTrainingJob"] == 0


def test_a_poll_that_is_refused_ends_it(aws: ScriptedAws) -> None:
    aws.faults.append(("DescribeTrainingJob", 400, "AccessDeniedException", False))
    assert fired(trigger())["train.job-1"]["error"] == "JobNotFollowed"


def test_out_of_time_it_stops_what_it_waits_for(aws: ScriptedAws) -> None:
    aws.jobs["job-1"] = ["InProgress"]
    assert fired(trigger(0.1))["train.job-1"]["error"] == "TimedOut"
    assert aws.count()["StopTrainingJob"] == 1


class Variables:
    """The triggerer's supervisor, as it answers what a variable is; ``None``: it can't."""

    def __init__(self, *values: str | None) -> None:
        self.values = list(values)

    async def asend(self, message: GetVariable) -> VariableResult | ErrorResponse:
        await asyncio.sleep(0)
        value = self.values.pop(0) if len(self.values) > 1 else self.values[0]
        if value is None:
            return ErrorResponse(error=ErrorType.API_SERVER_ERROR)
        if value == "broken":
            raise OSError("the supervisor has gone")
        return VariableResult(key=message.key, value=value)


def test_it_gives_control_back_when_a_variable_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Variables("old", None, "broken", "old", "new")
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", answers, raising=False)
    looking = FollowTrigger(watches="[]", connection=CONNECTION, variable="a.variable", seen="old")
    assert fired(FollowTrigger(**looking.serialize()[1])) == {}
    assert answers.values == ["new"]


class Supervisor:
    """The triggerer's supervisor, as it answers what has become of a task."""

    def __init__(self, state: str | None) -> None:
        self.state = state

    async def asend(self, message: GetTaskStates) -> TaskStatesResult:
        if self.state is None:
            raise asyncio.IncompleteReadError(b"", 4)
        assert (message.dag_id, message.map_index) == ("digits", -1)
        [run], [task] = message.run_ids or [], message.task_ids or []
        # One that answers in no time would not be there to be cancelled.
        await asyncio.sleep(0.01)
        return TaskStatesResult(task_states={run: {task: self.state}})


TASK: Any = SimpleNamespace(
    id=1,
    dag_id="digits",
    run_id="friday",
    task_id="train",
    map_index=-1,
    try_number=1,
    context_carrier=None,
)


@pytest.fixture
def supervised(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], None]:
    """Let Airflow say of the task that it is in a state; ``None``: nobody answers."""

    def supervised(state: str | None) -> None:
        monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", Supervisor(state), raising=False)

    return supervised


@pytest.mark.parametrize(("state", "stops"), [("failed", 1), ("deferred", 0)])
def test_a_person_stops_the_job_and_a_restart_does_not(
    aws: ScriptedAws, supervised: Callable[[str | None], None], state: str, stops: int
) -> None:
    aws.jobs["job-1"] = ["InProgress"]
    supervised(state)

    async def cancelled() -> None:
        runner, running = await following(aws)
        if state == "deferred":
            running.cancel()
        else:
            runner.to_cancel.append(1)
            await runner.cancel_triggers()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())
    assert aws.count()["StopTrainingJob"] == stops


@pytest.mark.parametrize(
    ("state", "stops"),
    [
        ("failed", 1),
        ("success", 1),
        ("deferred", 0),
        pytest.param("queued", 0, id="another triggerer's event let it go on"),
        pytest.param(None, 0, id="the triggerer ends"),
    ],
)
def test_before_airflow_3_3_the_state_of_the_task_tells_why_it_is_cancelled(
    aws: ScriptedAws,
    supervised: Callable[[str | None], None],
    monkeypatch: pytest.MonkeyPatch,
    state: str | None,
    stops: int,
) -> None:
    monkeypatch.setattr(versions, "CALLS_ON_KILL", False)
    aws.jobs["job-1"] = ["InProgress"]
    supervised(state)

    async def cancelled() -> None:
        _, running = await following(aws)
        while not running.done():
            running.cancel()
            await asyncio.sleep(0)

    asyncio.run(cancelled())
    assert aws.count()["StopTrainingJob"] == stops


async def following(aws: ScriptedAws) -> tuple[Any, asyncio.Task[None]]:
    """Return a triggerer's runner, and its trigger that has begun to follow a job."""
    runner: Any = TriggerRunner()  # type: ignore[no-untyped-call]  # Airflow leaves it so
    it = trigger()
    it.task_instance = TASK
    running = asyncio.create_task(runner.run_trigger(1, it))
    runner.triggers[1] = {"task": running, "is_watcher": False, "name": "t", "events": 0}
    while not aws.count()["DescribeTrainingJob"]:
        if running.done():
            running.result()
        await asyncio.sleep(0.01)
    return runner, running


def test_a_stop_outlasts_the_cancellations_that_follow(
    aws: ScriptedAws, supervised: Callable[[str | None], None]
) -> None:
    """A triggerer cancels a trigger again in each of its rounds, until the trigger is gone."""
    aws.jobs["job-1"] = ["InProgress"]
    supervised("failed")
    aws.faults.append(("StopTrainingJob", 400, "ThrottlingException", False))

    async def cancelled() -> None:
        runner, running = await following(aws)
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
