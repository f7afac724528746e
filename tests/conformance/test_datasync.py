"""Staging by DataSync is the same on every driver, pays once, and leaves nothing behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import run
from orchestration.local.run.executions import role
from tests.conformance import normal, pipelines
from tests.conformance.test_conformance import BACKENDS, Backend, Outcome, agree, data, jobs
from tests.conformance.test_faults import failed, start, throttled

pytestmark = pytest.mark.slow

CHANGES = (
    "CreateLocationS3",
    "CreateTask",
    "StartTaskExecution",
    "DeleteTask",
    "DeleteLocation",
)
READS = ("ListTaskExecutions", "DescribeTask", "DescribeTaskExecution", "ListTasks")
Stage = Callable[..., dict[Backend, Outcome]]


@pytest.fixture
def everywhere(tmp_path: Path, airflow: LocalAirflow) -> Stage:
    """Run a pipeline on every driver, each time in a new account with the role that it needs."""

    usual = data(tmp_path / "usual")

    def suffer(pipeline: Pipeline, *faults: Fault, folder: Path = usual) -> Any:
        outcomes = {}
        for backend in BACKENDS:
            with EmbeddedAws(time_scale=0.005) as aws:
                role(aws, "DataSync", "datasync.amazonaws.com")
                for fault in faults:
                    aws.inject(fault)
                report = start(pipeline, backend, aws, folder, airflow)
                outcomes[backend] = Outcome([report], list(report.calls), aws.state())
        return outcomes

    return suffer


def lost(operation: str) -> Fault:
    """A call that takes effect, and whose response never comes."""
    return Fault("datasync", operation, "InternalException", "lost", status=500, after_effect=True)


def staged(outcome: Outcome) -> list[str]:
    """The keys that a run has staged, below its own prefix."""
    return sorted(
        key.split("/staging/", 1)[1]
        for key in outcome.state["s3"]["workspace"]
        if "/staging/" in key and normal.JOURNAL not in key
    )


def left(outcome: Outcome) -> list[int]:
    """How many locations, tasks and executions are left."""
    kinds = ("Locations", "Tasks", "TaskExecutions")
    return [len(outcome.state["datasync"][kind]) for kind in kinds]


EVERYTHING = ["holdout/held.csv", "train/deep/%41&x=1.csv", "train/one.csv"]
EVERYTHING += ["train/two words + ü.csv"]


def test_datasync_copies_the_same_on_every_driver(everywhere: Stage) -> None:
    outcomes = everywhere(pipelines.synced())
    agree(outcomes)
    for outcome in outcomes.values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        assert outcome.outputs["staging"]["object_count"] == 4
        assert staged(outcome) == EVERYTHING
        assert left(outcome) == [0, 0, 0]
        assert not jobs(outcome, "CopyObject")


def test_filters_and_the_storage_class_reach_datasync(everywhere: Stage) -> None:
    fields = {"include": ("/train",), "exclude": ("*.one", "/train/deep")}
    own = {"storage_class": "STANDARD_IA", "source_account": "123456789012"}
    outcomes = everywhere(pipelines.synced(**fields, **own))
    agree(outcomes)
    for outcome in outcomes.values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        assert staged(outcome) == ["train/one.csv", "train/two words + ü.csv"]
        assert outcome.outputs["staging"]["object_count"] == 2
        assert len(jobs(outcome, "HeadBucket")) == 1


@pytest.mark.thorough
def test_lost_responses_and_throttling_copy_nothing_twice(everywhere: Stage) -> None:
    faults = [lost(operation) for operation in CHANGES]
    faults += [throttled("datasync", operation) for operation in READS]
    outcomes = everywhere(pipelines.synced(), *faults)
    for outcome in outcomes.values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        assert len(jobs(outcome, "CreateTask")) == 1
        assert "InternalException" in failed("StartTaskExecution", outcome)
        # A location whose creation had no response stays: it costs nothing, and has the run's tags.
        assert left(outcome) == [1, 0, 0]
        assert staged(outcome) == EVERYTHING
        assert outcome.outputs["staging"]["object_count"] == 4


def test_a_failed_transfer_has_its_reason_and_leaves_nothing(everywhere: Stage) -> None:
    fault = Fault.job("synced", operation="StartTaskExecution", reason="the network is down")
    outcomes = everywhere(pipelines.synced(), fault)
    agree(outcomes)
    for outcome in outcomes.values():
        assert outcome.last.error == "JobFailed"
        assert "the network is down" in str(outcome.last.cause)
        assert left(outcome) == [0, 0, 0]


def test_a_transfer_beyond_its_time_is_cancelled(everywhere: Stage) -> None:
    pipeline = pipelines.synced()
    stage: Any = pipeline.stages[0]
    # Shorter than a user may ask for: limits are not scaled.
    short = stage.destination.model_copy(update={"timeout_s": 3})
    stage = stage.model_copy(update={"destination": short})
    pipeline = pipeline.model_copy(update={"stages": (stage,)})
    slow = replace(Fault.job("synced", operation="StartTaskExecution"), delay_s=36_000)
    outcomes = everywhere(pipeline, slow)
    for outcome in outcomes.values():
        assert outcome.last.error == "TimedOut"
        assert str(outcome.last.cause).endswith("did not end within 3 s; it was told to stop")
        assert jobs(outcome, "CancelTaskExecution")
        assert left(outcome) == [0, 0, 0]
    assert len({_without_ids(outcome.last.cause) for outcome in outcomes.values()}) == 1


def _without_ids(cause: object) -> str:
    return re.sub(r"-[0-9a-f]{12,}", "", str(cause))


def test_an_empty_source_and_a_refused_start_fail_the_run(
    everywhere: Stage, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for outcome in everywhere(pipelines.synced(), folder=empty).values():
        assert outcome.last.error == "StagedDataDiffers"
        assert "listed: 0" in str(outcome.last.cause)
    refused = Fault("datasync", "StartTaskExecution", "InvalidRequestException", "no")
    outcomes = everywhere(pipelines.synced(), refused)
    agree(outcomes)
    for outcome in outcomes.values():
        assert outcome.last.error == "TransferNotStarted"
        assert left(outcome) == [0, 0, 0]


def test_the_listing_chooses_the_way(everywhere: Stage, airflow: LocalAirflow) -> None:
    few = everywhere(pipelines.synced(copy_by="automatic"))
    agree(few)
    for outcome in few.values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        assert len(jobs(outcome, "CopyObject")) == 4
        assert not jobs(outcome, "CreateTask")
    given = pipelines.PARAMETERS
    bucket, _, prefix = given["data"].removeprefix("s3://").partition("/")
    # In one account, since most of the time would go into uploads.
    with EmbeddedAws(time_scale=0.005) as aws:
        role(aws, "DataSync", "datasync.amazonaws.com")
        s3 = aws.client("s3")
        for name in (bucket, given["bucket"]):
            s3.create_bucket(Bucket=name)
        for number in range(501):
            s3.put_object(Bucket=bucket, Key=f"{prefix}/{number}.csv", Body=b"")
        for number, on in enumerate(BACKENDS, start=1):
            pipeline = pipelines.synced(copy_by="automatic")
            report = run(pipeline, on=on, parameters=given, aws=aws, airflow=airflow)
            outcome = Outcome([report], list(report.calls), aws.state())
            assert report.state == "succeeded", report.cause
            assert not jobs(outcome, "CopyObject")
            assert len(staged(outcome)) == number * 501
            assert left(outcome) == [0, 0, 0]


@pytest.mark.thorough
def test_a_file_system_that_exists_is_filled_and_kept(
    tmp_path: Path, airflow: LocalAirflow
) -> None:
    """One account: a transfer that fails, one with every response lost, and one that is done."""
    outcomes, folder = {}, data(tmp_path)
    for backend in BACKENDS:
        with EmbeddedAws(time_scale=0.005) as aws:
            role(aws, "DataSync", "datasync.amazonaws.com")
            pipeline = pipelines.filled(file_system(aws))
            aws.inject(Fault.job("filled", operation="StartTaskExecution", reason="no route"))
            reports = [start(pipeline, backend, aws, folder, airflow)]
            for operation in ("CreateTask", "StartTaskExecution", "DeleteTask"):
                aws.inject(lost(operation))
            reports += [start(pipeline, backend, aws, folder, airflow) for _ in range(2)]
            calls = [call for report in reports for call in report.calls]
            outcomes[backend] = Outcome(reports, calls, aws.state())
    for outcome in outcomes.values():
        failed_run, *good = outcome.reports
        assert (failed_run.error, failed_run.state) == ("JobFailed", "failed")
        assert "no route" in str(failed_run.cause)
        for report in good:
            assert report.state == "succeeded", report.cause
            outputs: Any = report.outputs
            size = sum(path.stat().st_size for path in folder.rglob("*.csv"))
            counts = [outputs["staging"][each] for each in ("object_count", "total_bytes")]
            assert counts == [4, size]
        # That of the second run has no response.
        assert len(jobs(outcome, "StartTaskExecution")) == 2
        assert left(outcome) == [0, 0, 0]
        assert len(outcome.state["fsx"]["FileSystems"]) == 1
    assert len({str(normal.changes(outcome.calls)) for outcome in outcomes.values()}) == 1


def file_system(aws: EmbeddedAws) -> str:
    """A file system that an administrator made long ago."""
    aws.provide(subnets=["subnet-0123abcd"])
    made = aws.client("fsx").create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=["subnet-0123abcd"],
        LustreConfiguration={"DeploymentType": "SCRATCH_2"},
    )
    return str(made["FileSystem"]["FileSystemId"])


def test_a_file_system_that_does_not_exist_is_refused_before_anything_is_made(
    everywhere: Stage,
) -> None:
    for outcome in everywhere(pipelines.filled()).values():
        assert "FileSystemNotFound" in str(outcome.last.error)
        assert not jobs(outcome, "CreateLocationS3")
