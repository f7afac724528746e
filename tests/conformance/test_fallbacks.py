"""A lack of capacity leads to the next machines, everywhere with the same calls, paid once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from orchestration import Cluster, NoStrategy, parameter
from orchestration.checks.rules import check
from orchestration.expressions import Item, Result, Tree, join, run_id
from orchestration.graph import (
    Adopt,
    Alternative,
    Call,
    ErrorPattern,
    Fallback,
    ForEach,
    Graph,
    Operation,
    Output,
    ParameterSpec,
    Until,
    Workflow,
)
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import direct_runs, executions
from orchestration.local.run.report import Followed
from orchestration.refs import Expression
from orchestration.stages.values import ABSENT
from tests.conformance import normal, pipelines
from tests.conformance.test_conformance import BACKENDS, Backend, agree, data, jobs
from tests.conformance.test_faults import endure as endured

pytestmark = [pytest.mark.slow]

SCALE = 0.002
ROLE = "arn:aws:iam::123456789012:role/trainer"
TYPES = ("ml.p5.48xlarge", "ml.p4d.24xlarge", "ml.g5.48xlarge")
POLLED = {"MaxPendingTimeInSeconds": 7200}
FOLLOWED_OR_POLLED = (
    pytest.param({}, id="followed"),
    pytest.param(POLLED, id="polled", marks=pytest.mark.thorough),
)
"""A field that the optimised integration does not know."""


def operation(action: str, name: Tree, **request: Any) -> Operation:
    return Operation("sagemaker", f"{action}TrainingJob", {"TrainingJobName": name, **request})


def created(name: Tree, machines: str, stopping: dict[str, int], **more: Any) -> Operation:
    return operation(
        "Create",
        name,
        RoleArn=ROLE,
        AlgorithmSpecification={
            "TrainingImage": "image",
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["true"],
        },
        OutputDataConfig={"S3OutputPath": "s3://workspace/out"},
        ResourceConfig={"InstanceType": machines, "InstanceCount": 1, "VolumeSizeInGB": 10},
        StoppingCondition={"MaxRuntimeInSeconds": 3600, **stopping},
        **more,
    )


def training(*types: str, stopping: dict[str, int] | None = None, **more: Any) -> Call:
    """A job on the first of some machines, else on the next."""
    ends: tuple[tuple[str, ...], ...] = ((), ("-b",), ("-c",))
    names = [join("fit-", parameter("token"), "-", run_id(), *end) for end in ends]
    fallbacks = [
        Alternative(
            label=f"1 x {machines}",
            operation=created(name, machines, stopping or {}),
            poll=operation("Describe", name),
            stop=operation("Stop", name),
        )
        for name, machines in zip(names, types, strict=False)
    ]
    own = fallbacks[0]
    return Call(
        name="train.job",
        operation=own.operation,
        until=Until(
            poll=own.poll,
            stop=own.stop,
            status=("TrainingJobStatus",),
            success=frozenset(["Completed"]),
            failure=frozenset(["Failed", "Stopped"]),
            reason=("FailureReason",),
            absent=ABSENT,
            outputs={
                "name": Output(("TrainingJobName",), kind="string"),
                "type": Output(("ResourceConfig", "InstanceType")),
            },
            **more,
        ),
        adopt=Adopt(exists=ErrorPattern("ResourceInUse"), name_field="TrainingJobName"),
        fallback=Fallback(
            label=own.label,
            alternatives=tuple(fallbacks[1:]),
            reasons=("CapacityError",),
            refusals=(ErrorPattern("ResourceLimitExceeded", "training job usage"),),
        ),
    )


def workflow(call: Call) -> Workflow:
    return check(
        Workflow(
            name="falls-back",
            graph=Graph((call,)),
            parameters=(ParameterSpec(name="token", default="t"),),
            outputs={name: Result("train.job", name) for name in ("name", "type")},
        )
    )


@dataclass(frozen=True)
class Ended:
    state: str
    outputs: Any
    error: str
    cause: str
    calls: list[Any]
    account: dict[str, Any]

    @property
    def jobs(self) -> dict[str, str]:
        """Of each job that exists: its status, by its machines."""
        return {
            job["ResourceConfig"]["InstanceType"]: job["TrainingJobStatus"]
            for job in self.account["sagemaker"]["TrainingJobs"].values()
        }

    @property
    def created(self) -> list[str]:
        """The machines that were asked for, in order, with the answers that were errors."""
        return [
            " ".join(filter(None, (c.request["ResourceConfig"]["InstanceType"], c.error_code)))
            for c in self.calls
            if c.operation == "CreateTrainingJob"
        ]


Suffer = Callable[..., dict[Backend, Ended]]


@pytest.fixture
def everywhere(airflow: LocalAirflow, request: pytest.FixtureRequest) -> Suffer:
    run_name = re.sub(r"\W+", "-", request.node.name)[:60].strip("-")

    def suffer(call: Call | Workflow, *faults: Fault) -> dict[Backend, Ended]:
        made = workflow(call) if isinstance(call, Call) else call
        outcomes = {b: endure(made, b, run_name, airflow, faults) for b in BACKENDS}
        states, *others = (outcomes[backend] for backend in BACKENDS)
        for other in others:
            assert normal.changes(states.calls) == normal.changes(other.calls)
            assert normal.questions(states.calls) == normal.questions(other.calls)
            assert normal.account(states.account) == normal.account(other.account)
            assert (states.state, states.error) == (other.state, other.error)
            assert normal.anonymous(states.cause) == normal.anonymous(other.cause)
            assert normal.anonymous(states.outputs) == normal.anonymous(other.outputs)
        return outcomes

    return suffer


def endure(
    made: Workflow, on: Backend, name: str, airflow: LocalAirflow, faults: tuple[Fault, ...]
) -> Ended:
    with EmbeddedAws(time_scale=SCALE) as aws:
        aws.provide(roles=[ROLE])
        aws.client("s3").create_bucket(Bucket="workspace")
        before = max((call.sequence for call in aws.calls()), default=0)
        for fault in faults:
            aws.inject(fault)
        if on == "airflow":
            ended = airflow.run(made, aws=aws, run_id=name, time_scale=SCALE)
            state = "succeeded" if ended.state == "success" else "failed"
            told = (ended.outputs, ended.error or "", ended.cause or "")
        else:
            followed = follow(on, aws, made, name)
            state = followed.state
            told = (followed.outputs, followed.error or "", followed.cause or "")
        calls = [call for call in aws.calls() if call.sequence > before]
        return Ended(state, *told, calls, aws.state())


def follow(on: Backend, aws: EmbeddedAws, made: Workflow, name: str) -> Followed:
    values = {"token": "t"}
    if on == "direct":
        place = "s3://workspace"
        return direct_runs.follow(aws, made, values, name, lambda _: None, workspace=place)
    return executions.follow(aws, made, values, name, lambda _: None)


@pytest.mark.parametrize("stopping", [{}, POLLED], ids=["followed", "polled"])
def test_the_next_machines_are_asked_for_where_the_first_have_no_capacity(
    everywhere: Suffer, stopping: dict[str, int]
) -> None:
    fault = Fault.capacity(instance_type=TYPES[0], after_s=60)
    for ended in everywhere(training(*TYPES, stopping=stopping), fault).values():
        assert ended.state == "succeeded", ended.cause
        assert ended.outputs["type"] == TYPES[1]
        assert ended.outputs["name"].endswith("-b")
        assert ended.created == [TYPES[0], TYPES[1]]
        assert ended.jobs == {TYPES[0]: "Failed", TYPES[1]: "Completed"}


@pytest.mark.parametrize("stopping", FOLLOWED_OR_POLLED)
def test_a_quota_leads_to_the_next_machines(everywhere: Suffer, stopping: dict[str, int]) -> None:
    call = training(*TYPES, stopping=stopping)
    for ended in everywhere(call, Fault.quota(TYPES[0]), Fault.quota(TYPES[1])).values():
        assert ended.state == "succeeded", ended.cause
        assert ended.outputs["type"] == TYPES[2]
        refused = "ResourceLimitExceeded"
        assert ended.created == [f"{TYPES[0]} {refused}", f"{TYPES[1]} {refused}", TYPES[2]]
        assert ended.jobs == {TYPES[2]: "Completed"}


@pytest.mark.parametrize("stopping", FOLLOWED_OR_POLLED)
def test_where_nothing_has_capacity_the_step_tells_of_each(
    everywhere: Suffer, stopping: dict[str, int]
) -> None:
    call = training(*TYPES, stopping=stopping)
    faults = [
        Fault.capacity(instance_type=TYPES[0]),
        Fault.quota(TYPES[1]),
        Fault.capacity(instance_type=TYPES[2]),
    ]
    for ended in everywhere(call, *faults).values():
        assert ended.error == "NoCapacity"
        assert len(re.findall(r"fit-t-[0-9a-f]{12}", ended.cause)) == 3
        first, second, third = ended.cause.split("; ")
        assert first.startswith(f"nothing had capacity: 1 x {TYPES[0]}: CreateTrainingJob fit-t-")
        assert "ended as Failed: CapacityError: Unable to provision" in first
        assert second.startswith(f"1 x {TYPES[1]}: CreateTrainingJob fit-t-")
        assert "was refused: ResourceLimitExceeded: The account-level service limit" in second
        assert "Service:" not in second
        assert third.startswith(f"1 x {TYPES[2]}: ")


@pytest.mark.parametrize("stopping", FOLLOWED_OR_POLLED)
@pytest.mark.parametrize(
    "reason",
    [
        "AlgorithmError: CapacityError: Unable to provision requested ML compute capacity",
        "InternalServerError: We encountered an internal error. Please try again.",
    ],
)
def test_a_job_that_failed_for_another_reason_starts_no_second(
    everywhere: Suffer, stopping: dict[str, int], reason: str
) -> None:
    faults = [Fault.job("fit-", reason=reason), Fault.capacity(instance_type=TYPES[1])]
    for ended in everywhere(training(*TYPES, stopping=stopping), *faults).values():
        assert ended.error == "JobFailed"
        assert ended.cause.endswith(f"ended as Failed: {reason}")
        assert ended.created == [TYPES[0]]


def test_another_refusal_starts_no_second() -> None:
    refused = Fault("sagemaker", "CreateTrainingJob", "ResourceLimitExceeded", "too many tags")
    with EmbeddedAws(time_scale=SCALE) as aws:
        aws.provide(roles=[ROLE])
        aws.inject(refused)
        ended = executions.follow(aws, workflow(training(*TYPES)), {"token": "t"}, "x", print)
        assert ended.error == "ResourceLimitExceeded"
        assert "too many tags" in str(ended.cause)
        assert not aws.state()["sagemaker"]["TrainingJobs"]


@pytest.mark.parametrize("stopping", FOLLOWED_OR_POLLED)
def test_a_lost_response_is_adopted_though_its_own_job_uses_up_the_quota(
    everywhere: Suffer, stopping: dict[str, int]
) -> None:
    lost = Fault(
        *("sagemaker", "CreateTrainingJob", "ThrottlingException", "Rate exceeded"),
        after_effect=True,
    )
    # Met by the second call, for the job that the first one started.
    for ended in everywhere(
        training(*TYPES, stopping=stopping), lost, Fault.quota(TYPES[0])
    ).values():
        assert ended.state == "succeeded", ended.cause
        assert ended.jobs == {TYPES[0]: "Completed"}
        errors = ("ThrottlingException", "ResourceLimitExceeded")
        assert ended.created == [f"{TYPES[0]} {error}" for error in errors]


def test_each_alternative_survives_a_lost_response(everywhere: Suffer) -> None:
    lost = Fault("sagemaker", "CreateTrainingJob", "InternalFailure", "x", 500, 2, True)
    for ended in everywhere(
        training(*TYPES), lost, Fault.capacity(instance_type=TYPES[0])
    ).values():
        assert ended.state == "succeeded", ended.cause
        assert ended.jobs == {TYPES[0]: "Failed", TYPES[1]: "Completed"}


def test_a_job_that_is_late_is_stopped_and_starts_no_second() -> None:
    call = training(*TYPES, stopping=POLLED, interval_s=200, timeout_s=2000)
    waits = Fault.capacity(instance_type=TYPES[0], after_s=400_000)
    with EmbeddedAws(time_scale=SCALE) as aws:
        aws.provide(roles=[ROLE])
        aws.inject(waits)
        ended = executions.follow(aws, workflow(call), {"token": "t"}, "late", lambda _: None)
        assert ended.error == "TimedOut"
        jobs = aws.state()["sagemaker"]["TrainingJobs"].values()
        assert [job["TrainingJobStatus"] for job in jobs] in (["Stopped"], ["Stopping"])


@pytest.mark.toolkit
def test_a_stage_goes_on_with_what_the_second_machines_trained(
    airflow: LocalAirflow, tmp_path: Path
) -> None:
    machines = {"instance_type": "ml.c5.2xlarge", "instance_count": 2}
    cluster = {"instance_type": "ml.c5.xlarge", "fallbacks": [machines]}
    train = pipelines.training(
        "train",
        join(parameter("data"), "/train"),
        cluster=Cluster.model_validate(cluster),
        strategy=NoStrategy(),
        hyperparameters={"scores": "0.5"},
    )
    pipeline = pipelines.pipeline("falls-back", train, pipelines.evaluation("evaluate", train))
    faults = [Fault.capacity(instance_type="ml.c5.xlarge")]
    folder = data(tmp_path)
    outcomes = {b: endured(pipeline, b, folder, airflow, (faults,)) for b in BACKENDS}
    agree(outcomes)
    for outcome in outcomes.values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        first, second = (call.request for call in jobs(outcome, "CreateTrainingJob"))
        assert second["ResourceConfig"]["InstanceCount"] == 2
        assert outcome.outputs["train"]["job_name"] == second["TrainingJobName"]
        assert first["TrainingJobName"] != second["TrainingJobName"]
        assert "model.tar.gz" in outcome.outputs["train"]["model_artifacts"]


def waiting(*types: str, wait_s: float = 900, **more: Any) -> Call:
    """The same, going round again for a while."""
    call = training(*types, **more)
    assert call.fallback is not None
    fallback = replace(
        call.fallback,
        refusals=(ErrorPattern("ResourceLimitExceeded", "Instances, with current utilization"),),
        futile=(ErrorPattern("ResourceLimitExceeded", "is 0 Instances"),),
        wait_s=wait_s,
    )
    return replace(call, fallback=fallback)


def test_capacity_that_comes_back_is_taken_in_the_second_round(everywhere: Suffer) -> None:
    faults = [
        Fault.capacity(instance_type=TYPES[0]),
        Fault.quota(TYPES[1], limit=2, times=1),
    ]
    for ended in everywhere(waiting(*TYPES[:2]), *faults).values():
        assert ended.state == "succeeded", ended.cause
        assert re.fullmatch(r"fit-t-[0-9a-f]{12}-2", ended.outputs["name"])
        refused = f"{TYPES[1]} ResourceLimitExceeded"
        assert ended.created == [TYPES[0], refused, TYPES[0]]
        assert sorted(job_statuses(ended)) == ["Completed", "Failed"]


def job_statuses(ended: Ended) -> list[str]:
    jobs = ended.account["sagemaker"]["TrainingJobs"].values()
    return [job["TrainingJobStatus"] for job in jobs]


def test_where_nothing_comes_the_cause_tells_how_long_it_was_waited_for(
    everywhere: Suffer,
) -> None:
    faults = [
        Fault.capacity(instance_type=TYPES[0], times=100),
        Fault.quota(TYPES[1], limit=2),
    ]
    for ended in everywhere(waiting(*TYPES[:2], stopping=POLLED), *faults).values():
        assert ended.error == "NoCapacity"
        first, second = ended.cause.split("; ")
        assert re.match(
            rf"nothing had capacity in 0.25 h of waiting: 1 x {TYPES[0]}: CreateTrainingJob "
            r"fit-t-[0-9a-f]{12}-2 ended as Failed: CapacityError: ",
            first,
        )
        assert re.match(
            rf"1 x {TYPES[1]}: CreateTrainingJob fit-t-[0-9a-f]{{12}}-b-2 was refused: "
            "ResourceLimitExceeded: The account-level service limit "
            rf"'{TYPES[1]} for training job usage' is 2 Instances",
            second,
        )
        refused = f"{TYPES[1]} ResourceLimitExceeded"
        assert ended.created == [TYPES[0], refused] * 2


def test_quotas_that_were_used_up_are_free_again_and_those_of_0_are_not(
    airflow: LocalAirflow,
) -> None:
    """On the driver that has its own words for it; the others share theirs."""

    def ended(fault: Fault, wait_s: float) -> Ended:
        call = waiting(TYPES[0], wait_s=wait_s)
        return endure(workflow(call), "step-functions", "quotas", airflow, (fault,))

    refused = f"{TYPES[0]} ResourceLimitExceeded"
    free = ended(Fault.quota(TYPES[0], limit=2, times=2), 3000)
    assert free.state == "succeeded", free.cause
    # What was only refused has left its name.
    assert re.fullmatch(r"fit-t-[0-9a-f]{12}", free.outputs["name"])
    assert free.created == [refused, refused, TYPES[0]]
    none = ended(Fault.quota(TYPES[0]), 86_400)
    assert none.error == "NoCapacity"
    assert none.cause.startswith(
        f"nothing had capacity, and waiting does not raise a quota of 0: 1 x {TYPES[0]}: "
    )
    assert none.created == [refused]


def test_each_element_of_a_loop_waits_by_itself(everywhere: Suffer) -> None:
    one, item = waiting(TYPES[0]), cast("Expression[object]", Item())
    name = join("fit-", item, "-", run_id())
    until = cast(Until, one.until)
    call = replace(
        one,
        operation=created(name, TYPES[0], {}),
        until=replace(until, poll=operation("Describe", name), stop=operation("Stop", name)),
    )
    each = ForEach(
        name="train.each",
        items=["a", "b"],
        body=Graph((call,)),
        collect={"name": Result("train.job", "name")},
        max_concurrency=1,
    )
    made = replace(workflow(one), graph=Graph((each,)), outputs={"all": Result(each.name, "items")})
    fault = Fault.capacity("fit-b", instance_type=TYPES[0])
    for ended in everywhere(check(made), fault).values():
        assert ended.state == "succeeded", ended.cause
        assert re.sub("-[0-9a-f]{12}", "", json.dumps(ended.outputs["all"])) == (
            '[{"name": "fit-a"}, {"name": "fit-b-2"}]'
        )
