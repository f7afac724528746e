"""Waiting for capacity: rounds through a list of machines, until a deadline, paid once."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from orchestration.errors import RunError
from orchestration.execution.calls import called
from orchestration.execution.effects import Aborted, Place, Request, Rest, ServiceError
from orchestration.execution.places import Attempt
from orchestration.execution.scope import Scope
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, ErrorPattern, Within
from tests.airflow.workflows import CAPACITY, falling_back
from tests.performances.scripted import Answer, ScriptedEdge, perform

QUOTA = (
    "The account-level service limit '{machines} for spot training job usage' is {limit} Instances,"
    " with current utilization of {limit} Instances and a request delta of 1 Instances."
)
Supply = Callable[[str, float], "str | None"]
"""What a request for machines meets at a moment: ``capacity``, a quota's number, or nothing."""


def waiting(wait_s: float = 3600, pause_s: float = 900) -> Call:
    call = falling_back("train.job")
    assert call.fallback is not None
    fallback = replace(
        call.fallback,
        refusals=(ErrorPattern("ResourceLimitExceeded", "Instances, with current utilization"),),
        futile=(ErrorPattern("ResourceLimitExceeded", "is 0 Instances"),),
        wait_s=wait_s,
        pause_s=pause_s,
    )
    return replace(call, fallback=fallback)


def moment(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat()


@dataclass
class SageMaker:
    """Jobs that run for 100 seconds, or find out in 60 that there are no machines."""

    supply: Supply
    jobs: dict[str, tuple[float, bool]] = field(default_factory=dict)
    """When each began, and whether it got machines."""
    edge: ScriptedEdge = field(init=False)
    attempt: Attempt = field(default_factory=Attempt)

    def __post_init__(self) -> None:
        self.edge = ScriptedEdge(self.answer)

    def answer(self, request: Request) -> Answer:
        parameters: Any = request.parameters
        name, now = parameters["TrainingJobName"], self.edge.now
        if request.operation == "CreateTrainingJob":
            return self._create(name, parameters["ResourceConfig"]["InstanceType"], now)
        if name not in self.jobs:
            return ServiceError("ValidationException", "Requested resource not found.")
        began, got = self.jobs[name]
        status = "InProgress"
        if now - began > (100 if got else 60):
            status = "Completed" if got else "Failed"
        return {
            "TrainingJobArn": name,
            "TrainingJobStatus": status,
            "FailureReason": CAPACITY,
            "ModelArtifacts": {"S3ModelArtifacts": "s3://b/m"},
            "CreationTime": moment(began),
            "FinalMetricDataList": [],
        }

    def _create(self, name: str, machines: str, now: float) -> Answer:
        if name in self.jobs:
            return ServiceError("ResourceInUse", "Job name must be unique")
        met = self.supply(machines, now)
        if met is not None and met.isdigit():
            text = QUOTA.format(machines=machines, limit=met)
            return ServiceError("ResourceLimitExceeded", text)
        self.jobs[name] = (now, met is None)
        return {"TrainingJobArn": name}

    def run(self, call: Call) -> Any:
        scope = Scope(Values({}, {}, "r"))
        return perform(called(call, scope, self.attempt, "train.job"), self.edge)["arn"]

    @property
    def created(self) -> list[str]:
        creates = [r for r in self.edge.sent if r.operation == "CreateTrainingJob"]
        return [str(request.parameters["TrainingJobName"]) for request in creates]


def test_a_second_round_takes_names_of_its_own() -> None:
    aws = SageMaker(lambda machines, now: None if now > 900 and "p4d" in machines else "capacity")
    assert aws.run(waiting()) == "base-b-2"
    assert aws.created == ["base", "base-b", "base-c", "base-2", "base-b-2"]


def test_what_was_only_refused_is_asked_for_under_the_same_name() -> None:
    aws = SageMaker(lambda _, now: None if now >= 900 else "4")
    assert aws.run(waiting()) == "base"
    assert aws.created == ["base", "base-b", "base-c", "base"]


def test_the_deadline_ends_it_and_the_last_pause_is_cut() -> None:
    moments: list[float] = []

    def supply(machines: str, now: float) -> str:
        if "p5" in machines:
            moments.append(now)
        return "2"

    aws = SageMaker(supply)
    with pytest.raises(RunError) as failed:
        aws.run(waiting(wait_s=2000))
    assert failed.value.error == "NoCapacity"
    begin = "nothing had capacity in 0.555556 h of waiting: 1 x ml.p5.48xlarge: CreateTrainingJob "
    assert failed.value.cause.startswith(begin + "base was refused: ResourceLimitExceeded: ")
    assert "limit 'ml.g5.48xlarge for spot training job usage' is 2" in failed.value.cause
    assert failed.value.cause.count("was refused") == 3
    assert moments == [0, 900, 1800, 2000]


def test_a_pause_between_rounds_ends_with_the_time_of_the_stage() -> None:
    moments: list[float] = []

    def supply(machines: str, now: float) -> str:
        moments.append(now)
        return "2"

    aws = SageMaker(supply)
    with pytest.raises(RunError) as late:
        aws.run(replace(waiting(wait_s=36_000), within=Within(since=0, seconds=1000)))
    cause = "CreateTrainingJob base was not started: the 1000 s of stage train are over"
    assert (late.value.error, late.value.cause) == ("TimedOut", cause)
    assert (sorted({*moments}), aws.edge.now) == ([0, 900], 1000)


def test_time_that_jobs_look_for_machines_counts() -> None:
    aws = SageMaker(lambda *_: "capacity")
    with pytest.raises(RunError, match="in 1 h of waiting"):
        aws.run(waiting(wait_s=3600))
    # Each round takes some minutes of its own beside the pause.
    assert 3600 <= aws.edge.now <= 3600 + 300
    assert len(aws.created) == 3 * 4


def test_a_quota_of_0_is_not_waited_for() -> None:
    aws = SageMaker(lambda *_: "0")
    with pytest.raises(RunError, match="capacity, and waiting does not raise a quota of 0: 1 x"):
        aws.run(waiting())
    assert aws.edge.now == 0


def test_a_quota_of_0_keeps_nothing_from_waiting_for_the_rest() -> None:
    aws = SageMaker(lambda machines, now: "0" if "p5" in machines or now < 900 else None)
    with pytest.raises(RunError, match="does not raise a quota of 0"):
        aws.run(waiting())
    aws = SageMaker(
        lambda machines, now: "0" if "p5" in machines else "capacity" if now < 900 else None
    )
    assert aws.run(waiting()) == "base-b-2"


def test_a_worker_that_comes_back_in_the_pause_begins_the_next_round() -> None:
    aws = SageMaker(lambda *_: None)
    aws.edge.pending["train.job"] = Rest("train.job", 500, Place(3, waited=900))
    assert aws.run(waiting()) == "base-3"
    assert aws.edge.now >= 500


def test_a_process_that_goes_on_waits_for_what_is_left_of_the_hours() -> None:
    aws = SageMaker(lambda *_: "2", attempt=Attempt(first=False))
    aws.edge.waited["train.job"] = 3000
    with pytest.raises(RunError, match="in 1 h of waiting"):
        aws.run(waiting(wait_s=3600))
    assert aws.edge.now == 600


def test_a_worker_that_lost_all_counts_the_hours_from_the_first_job() -> None:
    aws = SageMaker(lambda *_: "2", {"base": (0.0, False)}, Attempt(first=False))
    aws.edge.now = 3000
    with pytest.raises(RunError, match="in 1 h of waiting"):
        aws.run(waiting(wait_s=3600))
    assert 3600 <= aws.edge.now < 3700


def test_a_person_who_starts_again_gives_all_the_hours_again() -> None:
    again = Attempt(first=False, cleared=True, first_since_cleared=True)
    aws = SageMaker(lambda *_: "2", {"base": (0.0, False)}, again)
    aws.edge.now = 3000
    with pytest.raises(RunError, match="in 1 h of waiting"):
        aws.run(waiting(wait_s=3600))
    assert aws.edge.now >= 6600


def test_an_abort_in_the_pause_sends_nothing_more() -> None:
    aws = SageMaker(lambda *_: "2")

    def supply(machines: str, now: float) -> str:
        aws.edge.aborting = "g5" in machines
        return "2"

    aws.supply = supply
    with pytest.raises(Aborted):
        aws.run(waiting())
    assert aws.created == ["base", "base-b", "base-c"]
    assert not aws.jobs


def jobs(*lacking: str, running: str = "") -> dict[str, tuple[float, bool]]:
    return {**dict.fromkeys(lacking, (-1e3, False)), **({running: (0.0, True)} if running else {})}


@pytest.mark.parametrize(
    ("lacking", "running", "goes_on"),
    [
        (("base", "base-b", "base-c"), "base-2", "base-2"),
        (("base", "base-b", "base-c", "base-2", "base-3"), "base-b-3", "base-b-3"),
        (("base-b", "base-2"), "", "base-b-2"),
        ((), "", "base"),
    ],
)
def test_a_further_attempt_goes_on_in_the_newest_round(
    lacking: tuple[str, ...], running: str, goes_on: str
) -> None:
    aws = SageMaker(lambda *_: None, jobs(*lacking, running=running), Attempt(first=False))
    assert aws.run(waiting()) == goes_on
    assert len(aws.jobs) == len(lacking) + 1


def test_a_run_that_is_started_again_goes_on_behind_the_rounds() -> None:
    again = Attempt(first=False, cleared=True, first_since_cleared=True)
    aws = SageMaker(lambda *_: None, jobs("base", "base-b", "base-2", "base-c-2"), again)
    assert aws.run(waiting()) == "base-3"
    aws = SageMaker(lambda *_: None, jobs("base", running="base-b-2"), again)
    aws.jobs["base-b-2"] = (-1e3, True)
    aws.jobs["base-2"] = (-1e3, False)
    assert aws.run(waiting()) == "base-b-2"


def test_one_request_waits_without_alternatives() -> None:
    aws = SageMaker(lambda _, now: "capacity" if now < 900 else None)
    call = waiting()
    assert call.fallback is not None
    alone = replace(call, fallback=replace(call.fallback, alternatives=()))
    assert aws.run(alone) == "base-2"
