"""A run that failed is started again: what finished is kept, what failed is paid once more."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from orchestration import Pipeline, join, parameter
from orchestration.checks.rules import check
from orchestration.expressions import Result, run_id
from orchestration.graph import Call, Graph, ParameterSpec, Until, Workflow
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import run
from tests.conformance import normal, pipelines
from tests.conformance.test_conformance import BACKENDS, Backend, Outcome, data, jobs
from tests.conformance.test_fallbacks import (
    ROLE,
    SCALE,
    TYPES,
    follow,
    operation,
    training,
    waiting,
)

pytestmark = [pytest.mark.toolkit, pytest.mark.slow]

JOBS = ("CreateTrainingJob", "CreateProcessingJob", "CreateEndpoint")
Prepare = Callable[[EmbeddedAws], object]
"""What is done before an attempt: a fault is injected, say."""
Suffer = Callable[..., dict[Backend, Outcome]]


@pytest.fixture
def everywhere(tmp_path: Path, airflow: LocalAirflow) -> Suffer:
    folder = data(tmp_path)

    def suffer(pipeline: Pipeline, *attempts: Prepare) -> dict[Backend, Outcome]:
        return {b: attempted(pipeline, b, folder, airflow, attempts) for b in BACKENDS}

    return suffer


def attempted(
    pipeline: Pipeline,
    backend: Backend,
    folder: Path,
    airflow: LocalAirflow,
    attempts: tuple[Prepare, ...],
) -> Outcome:
    given = pipelines.PARAMETERS
    with EmbeddedAws(time_scale=0.003) as aws:
        reports = []
        for prepare in attempts:
            prepare(aws)
            report = run(
                pipeline,
                on=backend,
                parameters=given,
                aws=aws,
                uploads={given["data"]: folder},
                run_id=f"of-{pipeline.name}",
                airflow=airflow,
            )
            reports.append(report)
        return Outcome(reports, [c for r in reports for c in r.calls], aws.state())


def ends(outcome: Outcome) -> list[tuple[str, str | None]]:
    return [(report.state, report.error) for report in outcome.reports]


def agreed(outcomes: dict[Backend, Outcome]) -> None:
    """The same end of each attempt, the same jobs, the same account."""
    states, *others = (outcomes[backend] for backend in BACKENDS)
    for other in others:
        assert ends(other) == ends(states)
        for mine, theirs in zip(states.reports, other.reports, strict=True):
            assert normal.anonymous(mine.cause) == normal.anonymous(theirs.cause)
            assert normal.anonymous(mine.outputs) == normal.anonymous(theirs.outputs)
            assert [accepted(mine, job) for job in JOBS] == [accepted(theirs, job) for job in JOBS]
        assert normal.account(states.state) == normal.account(other.state)


def accepted(report: Any, operation: str) -> list[str]:
    return sorted(
        normal.anonymous(call.request)
        for call in report.calls
        if call.operation == operation and not call.error_code
    )


def count(outcome: Outcome, operation: str) -> list[int]:
    """How many requests of a kind each attempt has paid for."""
    return [len(accepted(report, operation)) for report in outcome.reports]


def fails(name: str, operation: str) -> Prepare:
    return lambda aws: aws.inject(Fault.job(name, operation=operation))


def without_endpoint(aws: EmbeddedAws) -> None:
    """Delete the endpoint that never came into service, as the table of errors asks for."""
    aws.client("sagemaker").delete_endpoint(EndpointName="served-deploy")


def served() -> Pipeline:
    """The best of two checkpoints, evaluated one after the other, behind an endpoint."""
    train = pipelines.training(
        "train", join(parameter("data"), "/train"), hyperparameters={"scores": "0.5,0.7"}
    )
    evaluate = pipelines.evaluation("evaluate", train, max_concurrency=1)
    deploy = pipelines.deployment("deploy", evaluate.outputs.best_checkpoint)
    return pipelines.pipeline("served", train, evaluate, deploy)


def test_what_finished_is_kept_and_what_failed_is_paid_once_more(everywhere: Suffer) -> None:
    """In training, then in the evaluation of a checkpoint, then in the deployment."""
    outcomes = everywhere(
        served(),
        fails("served-train", "CreateTrainingJob"),
        fails("served-evaluate", "CreateProcessingJob"),
        fails("served", "CreateEndpoint"),
        without_endpoint,
    )
    agreed(outcomes)
    for outcome in outcomes.values():
        assert ends(outcome) == [
            ("failed", "JobFailed"),
            ("failed", "JobFailed"),
            ("failed", "EndpointFailed"),
            ("succeeded", None),
        ], [report.cause for report in outcome.reports]
        assert count(outcome, "CreateTrainingJob") == [1, 1, 0, 0]
        assert count(outcome, "CreateProcessingJob") == [0, 2, 1, 0]
        names = [call.request["TrainingJobName"] for call in jobs(outcome, "CreateTrainingJob")]
        assert names[1] == f"{names[0]}-2"
        assert outcome.outputs["train"]["job_name"] == names[1]
        assert outcome.outputs["deploy"]["answer"]["score"] == 0.7


@pytest.mark.thorough
def test_a_file_system_is_acquired_anew(everywhere: Suffer) -> None:
    staged, train, _ = pipelines.file_system(fail="no").stages
    train = train.model_copy(update={"hyperparameters": {"scores": "0.5"}})
    pipeline = pipelines.pipeline("over-lustre", staged, train)
    outcomes = everywhere(pipeline, fails("train", "CreateTrainingJob"), lambda _: None)
    agreed(outcomes)
    for backend, outcome in outcomes.items():
        assert [state for state, _ in ends(outcome)] == ["failed", "succeeded"]
        assert count(outcome, "CreateFileSystem") == [1, 1]
        assert count(outcome, "DeleteFileSystem") == [1, 1]
        assert count(outcome, "CreateTrainingJob") == [1, 1]
        assert outcome.state["fsx"]["FileSystems"] == {}
        tokens = [c.request["ClientRequestToken"] for c in jobs(outcome, "CreateFileSystem")]
        # On Airflow a cleared task may find the file system still there, and must not leave it.
        later = tokens[0] if backend == "airflow" else f"{tokens[0]}-2"
        assert tokens[1] == later
        assert len(json.dumps(tokens)) < 120


def after(first: Call) -> Workflow:
    """A job on the first machines that have capacity, and one that comes after it."""
    name = join("after-", run_id())
    made = {**first.operation.request, "TrainingJobName": name}
    until = cast(Until, first.until)
    second = replace(
        first,
        name="after.job",
        operation=replace(first.operation, request=made),
        until=replace(until, poll=operation("Describe", name), stop=operation("Stop", name)),
        fallback=None,
        after=(first.name,),
    )
    return check(
        Workflow(
            name="after-fallbacks",
            graph=Graph((first, second)),
            parameters=(ParameterSpec(name="token", default="t"),),
            outputs={"first": Result(first.name, "name"), "after": Result(second.name, "name")},
        )
    )


def test_what_fell_back_is_found_where_it_stands(airflow: LocalAirflow) -> None:
    """What was refused for lack of capacity at first is not asked for beside what finished."""
    rounds: tuple[tuple[Fault, ...], ...] = (
        (Fault.quota(TYPES[0], times=1), Fault.job("fit-")),
        (Fault.capacity("fit-"), Fault.job("after-")),
        (),
    )
    created = [
        ["fit-t-<id> refused", "fit-t-<id>-b"],
        ["fit-t-<id>-2", "fit-t-<id>-b-2", "after-<id>"],
        ["after-<id>-2"],
    ]
    found(training(*TYPES[:2]), airflow, rounds, created, "fit-t-0123456789ab-b-2")


@pytest.mark.thorough
def test_what_took_several_rounds_is_found_where_it_stands(airflow: LocalAirflow) -> None:
    """Rounds and attempts count on in the same numbers."""
    rounds: tuple[tuple[Fault, ...], ...] = (
        (
            Fault.capacity(instance_type=TYPES[0]),
            Fault.quota(TYPES[1], limit=2, times=1),
            Fault.job("fit-"),
        ),
        (Fault.job("after-"),),
        (),
    )
    created = [
        ["fit-t-<id>", "fit-t-<id>-b refused", "fit-t-<id>-2"],
        ["fit-t-<id>-3", "after-<id>"],
        ["after-<id>-2"],
    ]
    found(waiting(*TYPES[:2]), airflow, rounds, created, "fit-t-0123456789ab-3")


def found(
    first: Call,
    airflow: LocalAirflow,
    rounds: tuple[tuple[Fault, ...], ...],
    created: list[list[str]],
    name: str,
) -> None:
    """Each attempt asks for these jobs, and the last one has this one's outputs."""
    made = after(first)
    for backend in BACKENDS:
        with EmbeddedAws(time_scale=SCALE) as aws:
            aws.provide(roles=[ROLE])
            aws.client("s3").create_bucket(Bucket="workspace")
            outputs: Any = None
            for faults, names in zip(rounds, created, strict=True):
                before = max((call.sequence for call in aws.calls()), default=0)
                for fault in faults:
                    aws.inject(fault)
                if backend == "airflow":
                    ended = airflow.run(made, aws=aws, run_id=name, time_scale=SCALE)
                    outputs = ended.outputs
                else:
                    outputs = follow(backend, aws, made, name).outputs
                calls = [call for call in aws.calls() if call.sequence > before]
                assert asked(calls) == names, backend
            assert normal.anonymous(outputs) == normal.anonymous(
                {"first": name, "after": "after-0123456789ab-2"}
            )


def asked(calls: list[Any]) -> list[str]:
    """The jobs that were asked for and did not exist yet."""
    return [
        json.loads(normal.anonymous(call.request["TrainingJobName"]))
        + (" refused" if call.error_code else "")
        for call in calls
        if call.operation == "CreateTrainingJob" and call.error_code != "ResourceInUse"
    ]
