"""Further tries of a stage's jobs: the same on every backend, and never more than asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, RunReport, run

pytestmark = pytest.mark.slow

BACKENDS = ("direct", "step-functions", "airflow")


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as started:
        started.client("s3").create_bucket(Bucket="tries")
        yield started


def trying(name: str, attempts: int, on: list[str] | None = None, **fields: Any) -> Pipeline:
    train = {
        "kind": "training_job",
        "image": "image",
        "entrypoint": ["true"],
        "cluster": {"instance_type": "ml.c5.xlarge"},
        "retry": {"attempts": attempts, **({} if on is None else {"on": on})},
        **fields,
    }
    return Pipeline.parse(
        {
            "name": name,
            "region": "us-east-1",
            "workspace": "s3://tries/runs",
            "role": "arn:aws:iam::123456789012:role/trainer",
            "stages": {"train": train},
        }
    )


def accepted(report: RunReport) -> list[str]:
    """The names of the jobs that were started, each without what the run puts into it."""
    names = [
        call.request["TrainingJobName"]
        for call in report.calls
        if call.operation == "CreateTrainingJob" and not call.error_code
    ]
    return [name.split("-train-", 1)[1][12:] for name in names]


@pytest.mark.parametrize(
    ("on", "integration"), [*((on, "sync") for on in BACKENDS), ("step-functions", "sdk")]
)
def test_a_job_that_fails_is_tried_again_and_again(
    on: On, aws: EmbeddedAws, airflow: LocalAirflow, integration: str
) -> None:
    name = f"again-{on}-{integration}"
    pipeline = trying(name, 3).model_copy(update={"integration": integration})
    aws.inject(Fault.job(name, times=2, operation="CreateTrainingJob"))
    report = run(pipeline, on=on, aws=aws, airflow=airflow)
    assert (report.state, report.cause) == ("succeeded", None)
    assert accepted(report) == ["", "-2", "-3"]
    outputs: Any = report.outputs
    assert outputs["train"]["job_name"].endswith("-3")


@pytest.mark.parametrize("on", BACKENDS)
def test_where_all_tries_fail_a_rerun_pays_for_one_more(
    on: On, aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    name = f"failing-{on}"
    aws.inject(Fault.job(name, times=2, operation="CreateTrainingJob"))
    reports = [
        run(trying(name, 2), on=on, aws=aws, airflow=airflow, run_id="one") for _ in range(2)
    ]
    assert [(report.state, report.error) for report in reports] == [
        ("failed", "JobFailed"),
        ("succeeded", None),
    ]
    assert [accepted(report) for report in reports] == [["", "-2"], ["-3"]]
    assert "-2 ended as Failed" in str(reports[0].cause)


@pytest.mark.parametrize(
    ("on", "integration"), [*((on, "sync") for on in BACKENDS), ("step-functions", "sdk")]
)
def test_only_the_failures_that_the_stage_names_are_followed_by_another_job(
    on: On, aws: EmbeddedAws, airflow: LocalAirflow, integration: str
) -> None:
    name = f"named-{on}-{integration}"
    # The first finds no machines, the second runs out of its time, the third fails by itself.
    script = 'case "$TRAINING_JOB_NAME" in *-3) exit 1;; *) exec sleep 60;; esac'
    pipeline = trying(
        name,
        4,
        on=["capacity", "time_limit"],
        entrypoint=["sh", "-c", script],
        max_runtime_s=1,
    ).model_copy(update={"integration": integration})
    aws.inject(Fault.capacity(name))
    report = run(pipeline, on=on, aws=aws, airflow=airflow)
    assert (report.state, report.error) == ("failed", "JobFailed")
    assert accepted(report) == ["", "-2", "-3"]
    assert "-3 ended as Failed: AlgorithmError" in str(report.cause)


@pytest.mark.parametrize("on", BACKENDS)
def test_a_lack_of_capacity_may_be_left_to_a_person(
    on: On, aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    name = f"left-{on}"
    aws.inject(Fault.capacity(name))
    report = run(trying(name, 3, on=["job_failure"]), on=on, aws=aws, airflow=airflow)
    assert (report.state, report.error) == ("failed", "JobFailed")
    assert accepted(report) == [""]
    assert "CapacityError" in str(report.cause)
