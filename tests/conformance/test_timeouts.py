"""A stage that takes longer than its ``timeout_s`` ends in the same way on every backend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, RunReport, run
from tests.conformance.test_afterwards import CAUSE, everywhere, tells, told
from tests.conformance.test_tries import BACKENDS, accepted
from tests.pipeline.test_nesting import written

pytestmark = pytest.mark.slow

LIMIT_S = 15
"""In real time: for a job that never runs, and enough for one that does on a busy machine."""
NEVER_S = 4_000_000
SUBNET, GROUP = "subnet-0123abcd", "sg-0123abcd"


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as started:
        started.client("s3").create_bucket(Bucket="late")
        started.client("s3").put_object(Bucket="late", Key="in/a.txt", Body=b"a")
        started.client("sns").create_topic(Name="late")
        yield started


def described(name: str, stages: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    train = {
        "kind": "training_job",
        "image": "image",
        "entrypoint": ["true"],
        "cluster": {"instance_type": "ml.c5.xlarge"},
        "timeout_s": LIMIT_S,
        # None of them follows a job that was out of its stage's time.
        "retry": {"attempts": 3, "on": ["job_failure", "time_limit"]},
        **fields,
    }
    return {
        "name": name,
        "region": "us-east-1",
        "workspace": "s3://late/runs",
        "role": "arn:aws:iam::123456789012:role/trainer",
        "stages": {**(stages or {}), "train": train},
    }


def limited(name: str, stages: dict[str, Any] | None = None, **fields: Any) -> Pipeline:
    return Pipeline.parse(described(name, stages, **fields))


def waits_for_machines(aws: EmbeddedAws, name: str, times: int = 1) -> None:
    aws.inject(replace(Fault.capacity(name, after_s=NEVER_S), times=times))


@pytest.mark.parametrize(
    ("on", "integration"), [*((on, "sync") for on in BACKENDS), ("step-functions", "sdk")]
)
def test_the_job_is_stopped_and_a_run_that_is_started_again_has_time_anew(
    on: On, aws: EmbeddedAws, airflow: LocalAirflow, integration: str
) -> None:
    name = f"late-{on}-{integration}"
    pipeline = limited(name).model_copy(update={"integration": integration})
    waits_for_machines(aws, name)
    late, again = (run(pipeline, on=on, aws=aws, airflow=airflow, run_id="one") for _ in range(2))
    assert (late.state, late.error) == ("failed", "TimedOut")
    cause = f"did not end within the {LIMIT_S} s of stage train; it was told to stop"
    assert cause in str(late.cause)
    assert [call.operation for call in late.calls].count("StopTrainingJob") == 1
    assert (again.state, again.cause) == ("succeeded", None)
    assert [accepted(report) for report in (late, again)] == [[""], ["-2"]]


def made(report: RunReport) -> list[str]:
    return [call.operation for call in report.calls if not call.error_code]


@pytest.mark.thorough
def test_the_elements_of_a_loop_in_a_nested_pipeline_share_the_time(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    """Two of three run when it is over: both are stopped, and the third is never started."""
    waits_for_machines(aws, "inner", times=6)
    each = {"items": ["a", "b", "c"], "max_concurrency": 2}
    inner = described("inner", for_each=each)
    outer = {
        **described("inner-outer"),
        "stages": {"market": {"kind": "pipeline", "file": "inner.yaml"}},
        "on_failure": {"alarm": tells({"join": ["alarm ", CAUSE]}, topic="late")},
        "always": {"note": tells({"join": ["note ", CAUSE]}, topic="late")},
    }
    pipeline = Pipeline.load(written(tmp_path, inner=inner, outer=outer))
    for report in everywhere(pipeline, aws, airflow).values():
        assert (report.state, report.error) == ("failed", "TimedOut")
        cause = f"did not end within the {LIMIT_S} s of stage market_train; it was told to stop"
        assert cause in str(report.cause)
        ending = f"failed|TimedOut|{report.cause}"
        assert told(report) == {f"alarm {ending}", f"note {ending}"}
        calls = made(report)
        assert (calls.count("CreateTrainingJob"), calls.count("StopTrainingJob")) == (2, 2)


@pytest.mark.parametrize("on", BACKENDS)
def test_the_file_system_that_the_stage_reads_is_deleted(
    on: On, aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    name = f"guarded-{on}"
    system = {"kind": "fsx_lustre", "subnet": SUBNET, "security_groups": [GROUP]}
    staging = {"kind": "data_staging", "source": "s3://late/in", "destination": system}
    channel = {"kind": "fsx_lustre", "file_system": {"ref": "staging.file_system"}, "path": "/in"}
    vpc = {"subnets": [SUBNET], "security_groups": [GROUP]}
    reading = limited(name, {"staging": staging}, channels={"training": channel}, vpc=vpc)
    waits_for_machines(aws, name)
    report = run(reading, on=on, aws=aws, airflow=airflow)
    assert (report.state, report.error) == ("failed", "TimedOut")
    assert "stage train; it was told to stop" in str(report.cause)
    calls = made(report)
    assert calls.index("StopTrainingJob") < calls.index("DeleteFileSystem")
    [deleted] = {
        call.request["FileSystemId"]
        for call in report.calls
        if call.operation == "DeleteFileSystem"
    }
    assert deleted not in aws.state()["fsx"]["FileSystems"]


@pytest.mark.parametrize("on", BACKENDS[:2])
def test_waiting_for_capacity_ends_with_the_time_of_the_stage(
    on: On, aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    """On Airflow a worker performs the same steps as the direct driver does."""
    name = f"full-{on}"
    aws.inject(replace(Fault.capacity(name), times=10_000))
    waiting = limited(name, wait_for_capacity_h=168, retry=None)
    report = run(waiting, on=on, aws=aws, airflow=airflow)
    assert (report.state, report.error) == ("failed", "TimedOut")
    assert f"the {LIMIT_S} s of stage train" in str(report.cause)
    assert made(report).count("CreateTrainingJob") > 1
    jobs = aws.client("sagemaker").list_training_jobs(NameContains=name)["TrainingJobSummaries"]
    assert {job["TrainingJobStatus"] for job in jobs} <= {"Failed", "Stopped"}
