"""Executions that overlap, by each policy: the older one is held until a test ends it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends.stepfunctions.beginning.overlapping import SKIPPED
from orchestration.deploy import step_functions
from orchestration.deploy.executions import listed
from orchestration.errors import LocalError
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow, TaskState
from tests.local.conftest import ROLE, wait

pytestmark = pytest.mark.slow
PIPELINE: dict[str, Any] = {
    "region": "us-east-1",
    "workspace": "s3://my-bucket/overlapping",
    "role": ROLE,
    "stages": [
        {"name": "hold", "kind": "pause", "duration_s": 2_592_000},
        {
            "name": "tell",
            "kind": "aws_call",
            "service": "sns",
            "operation": "Publish",
            "request": {"TopicArn": "arn:aws:sns:us-east-1:123456789012:news", "Message": "done"},
            "after": ["hold"],
        },
    ],
}


JOB: dict[str, Any] = {
    "name": "train",
    "kind": "training_job",
    "image": "image",
    "entrypoint": ["sleep", "1000"],
    "cluster": {"instance_type": "ml.c5.xlarge"},
    "max_runtime_s": 400_000,
}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.001, enforce_iam=True) as embedded:
        embedded.provide(roles=[ROLE])
        # The jobs' own needs.
        allowed = {"Effect": "Allow", "Action": ["logs:*", "s3:*", "ecr:*"], "Resource": "*"}
        embedded.client("iam").put_role_policy(
            RoleName=ROLE.rpartition("/")[2],
            PolicyName="jobs",
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [allowed]}),
        )
        embedded.client("s3").create_bucket(Bucket="my-bucket")
        yield embedded


class Machine:
    """A deployed pipeline whose runs last until they are stopped."""

    def __init__(self, aws: EmbeddedAws, policy: str, **fields: Any) -> None:
        fields = {**PIPELINE, "name": policy.replace("_", "-"), **fields}
        self.name = fields["name"]
        pipeline = Pipeline(overlap=policy, **fields)
        self.states: Any = aws.client("stepfunctions")
        self.arn = step_functions(pipeline, session=aws).state_machine_arn

    def start(self, name: str, run: str | None = None) -> str:
        given = {} if run is None else {"orchestration:run": run}
        started = self.states.start_execution(
            stateMachineArn=self.arn, name=name, input=json.dumps(given)
        )
        return str(started["executionArn"])

    def enters(self, execution: str, state: str) -> None:
        """Wait until an execution has come to a state."""
        wait(lambda: self.entered(execution), lambda entered: state in entered)

    def entered(self, execution: str) -> list[str]:
        pages = self.states.get_paginator("get_execution_history")
        return [
            event["stateEnteredEventDetails"]["name"]
            for page in pages.paginate(executionArn=execution)
            for event in page["events"]
            if "stateEnteredEventDetails" in event
        ]

    def ends(self, execution: str) -> dict[str, Any]:
        def described() -> dict[str, Any]:
            return dict(self.states.describe_execution(executionArn=execution))

        return wait(described, lambda each: each["status"] != "RUNNING")

    def jobs(self, aws: EmbeddedAws) -> list[str]:
        """Return the states of its training jobs."""
        every = aws.state()["sagemaker"]["TrainingJobs"]
        return [
            each["TrainingJobStatus"]
            for name, each in every.items()
            if name.startswith(f"{self.name}-")
        ]

    def stop(self, *executions: str) -> None:
        for each in executions:
            self.states.stop_execution(executionArn=each)
            self.ends(each)


def test_a_run_that_queues_goes_on_when_the_older_ones_have_ended(aws: EmbeddedAws) -> None:
    machine = Machine(aws, "queue")
    first = machine.start("first")
    machine.enters(first, "hold-wait")
    second = machine.start("second")
    machine.enters(second, "WaitForOlder")
    third = machine.start("a-third")
    machine.enters(third, "WaitForOlder")
    machine.stop(first)
    machine.enters(second, "hold-wait")
    machine.stop(second)
    machine.enters(third, "hold-wait")
    machine.stop(third)


def test_a_run_is_skipped_while_an_older_one_is_under_way(aws: EmbeddedAws) -> None:
    machine = Machine(aws, "skip")
    first = machine.start("first")
    machine.enters(first, "hold-wait")
    second = machine.ends(machine.start("second"))
    assert (second["status"], json.loads(second["output"])) == ("SUCCEEDED", {SKIPPED: first})
    assert machine.entered(second["executionArn"])[-1] == "Skipped"
    shown = [(each.status, each.cause) for each in listed("skip", session=aws)]
    assert shown == [("SKIPPED", "skip:first was under way"), ("RUNNING", "")]
    machine.stop(first)
    third = machine.start("third")
    machine.enters(third, "hold-wait")
    machine.stop(third)


def test_a_run_is_not_lost_where_looks_are_throttled_for_minutes(aws: EmbeddedAws) -> None:
    machine = Machine(aws, "queue", name="patient")
    for operation in ("ListExecutions", "DescribeExecution"):
        aws.inject(
            Fault("stepfunctions", operation, "ThrottlingException", "Rate exceeded", times=30)
        )
    first = machine.start("patient-first")
    machine.enters(first, "hold-wait")
    second = machine.start("patient-second")
    machine.enters(second, "WaitForOlder")
    machine.stop(second, first)


def test_a_run_that_is_listed_late_decides_when_it_sees_itself_or_an_older_one(
    aws: EmbeddedAws,
) -> None:
    machine = Machine(aws, "skip", name="late")
    aws.inject(Fault.late("late:first", times=2))
    first = machine.start("first")
    machine.enters(first, "hold-wait")
    assert machine.entered(first).count("FindOldest") == 3
    aws.inject(Fault.late("late:second"))
    second = machine.ends(machine.start("second"))
    assert json.loads(second["output"]) == {SKIPPED: first}
    machine.stop(first)


@pytest.mark.parametrize("policy", ["queue", "stop_older"])
def test_policies_hold_where_runs_are_listed_late(aws: EmbeddedAws, policy: str) -> None:
    """Each run is missing in the first looks; the newer one decides by the older one it sees."""
    machine = Machine(aws, policy, name=f"late-{policy.replace('_', '-')}")
    aws.inject(Fault.late(f":{machine.name}:first", times=2))
    first = machine.start("first")
    machine.enters(first, "hold-wait")
    assert machine.entered(first).count("FindOldest") == 3
    aws.inject(Fault.late(f":{machine.name}:second", times=2))
    second = machine.start("second")
    if policy == "queue":
        machine.enters(second, "WaitForOlder")
        machine.stop(first)
    machine.enters(second, "hold-wait")
    ended = machine.ends(first)
    assert (ended["status"], ended.get("error")) == (
        "ABORTED", None if policy == "queue" else "Superseded"
    )  # fmt: skip
    assert machine.entered(second).count("FindOldest") >= 3
    machine.stop(second)


def test_runs_go_on_side_by_side_where_that_is_allowed(aws: EmbeddedAws) -> None:
    machine = Machine(aws, "allow")
    both = [machine.start("first"), machine.start("second")]
    for each in both:
        machine.enters(each, "hold-wait")
    machine.stop(*both)


@pytest.mark.parametrize("policy", ["queue", "skip", "stop_older"])
def test_of_executions_of_one_run_one_goes_on(aws: EmbeddedAws, policy: str) -> None:
    """EventBridge Scheduler may start a run twice."""
    machine = Machine(aws, policy)
    first = machine.start(f"{policy}-once", run="nightly")
    second = machine.start(f"{policy}-twice", run="nightly")
    wait(
        lambda: [machine.entered(each) for each in (first, second)],
        lambda both: sorted(entered[-1] for entered in both) == ["Skipped", "hold-wait"],
    )
    statuses = [
        machine.states.describe_execution(executionArn=each)["status"] for each in (first, second)
    ]
    assert sorted(statuses) == ["RUNNING", "SUCCEEDED"]
    machine.stop(*(e for e, s in zip((first, second), statuses, strict=True) if s == "RUNNING"))


def test_executions_of_one_run_that_may_overlap_pay_for_one_job(aws: EmbeddedAws) -> None:
    machine = Machine(aws, "allow", name="twice", stages=[{**JOB, "entrypoint": ["sleep", "1"]}])
    both = [machine.start(name, run="nightly") for name in ("first", "second")]
    assert [machine.ends(each)["status"] for each in both] == ["SUCCEEDED"] * 2
    asked = creations(aws, "twice-")
    assert (len(asked), asked.count(None)) == (2, 1), "the second adopts what the first pays"


def creations(aws: EmbeddedAws, prefix: str) -> list[str | None]:
    """Return the answers to requests for training jobs of such names: an error, or none."""
    calls = aws.calls(service="sagemaker")
    return [
        call.error_code
        for call in calls
        if call.operation == "CreateTrainingJob"
        and call.request["TrainingJobName"].startswith(prefix)
    ]


def test_the_older_run_is_stopped_and_cleaned_up_before_the_newer_one_pays(
    aws: EmbeddedAws,
) -> None:
    machine = Machine(aws, "stop_older", name="stopping", stages=[JOB])

    def jobs() -> list[str]:
        return machine.jobs(aws)

    first = machine.start("first")
    wait(jobs, lambda found: found == ["InProgress"])
    second = machine.start("second")
    stopped = machine.ends(first)
    assert (stopped["status"], stopped["error"]) == ("ABORTED", "Superseded")
    assert stopped["cause"] == f"A newer run took its place: {second}"
    # A job that was told to stop takes its time.
    wait(jobs, lambda found: sorted(found) == ["InProgress", "Stopped"])
    entered = machine.entered(second)
    assert entered.index("StopOlder") < entered.index("CleanUpOlder") < entered.index("train-job")
    ends = [c.operation for c in aws.calls(service="sagemaker") if not c.error_code]
    last = len(ends) - 1 - ends[::-1].index("CreateTrainingJob")
    assert "StopTrainingJob" in ends[:last]
    machine.stop(second)


def test_on_airflow_the_older_run_ends_before_the_newer_one_pays(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    """Its loop drives one run at a time: a run that is left is under way, and goes on later."""
    fields = {**PIPELINE, "name": "on-airflow", "stages": [JOB]}
    pipeline = Pipeline(overlap="stop_older", **fields)

    def leave(run_id: str, task_id: str) -> None:
        def die(task: TaskState) -> None:
            if (task.task_id, task.state) == (task_id, "deferred"):
                airflow.kill()

        with pytest.raises(LocalError, match="Airflow was killed"):
            airflow.run(pipeline, aws=aws, run_id=run_id, on_progress=die)

    leave("first", "train")
    leave("second", "inputs")
    assert creations(aws, "on-airflow-") == [None]
    stopped = airflow.run(pipeline, aws=aws, run_id="first")
    assert (stopped.state, stopped.error) == ("failed", "Superseded"), stopped.log
    assert stopped.cause == "A newer run took its place: second"
    jobs = [
        each.request
        for each in aws.calls(service="sagemaker")
        if each.operation == "StopTrainingJob"
    ]
    assert any(job["TrainingJobName"].startswith("on-airflow-") for job in jobs)
    leave("second", "train")
    assert creations(aws, "on-airflow-") == [None, None]
    cleared = airflow.run(pipeline, aws=aws, run_id="first")
    assert (cleared.state, cleared.error) == ("failed", "Superseded"), cleared.log
    assert creations(aws, "on-airflow-") == [None, None]


def test_of_two_that_start_together_the_newer_one_goes_on(aws: EmbeddedAws) -> None:
    machine = Machine(aws, "stop_older", name="together")
    both = [machine.start("first"), machine.start("second")]
    machine.enters(both[1], "hold-wait")
    assert machine.ends(both[0])["error"] == "Superseded"
    assert machine.states.describe_execution(executionArn=both[1])["status"] == "RUNNING"
    machine.stop(both[1])
