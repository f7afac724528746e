"""``processing_job`` does the same on every driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestration import (
    Pipeline,
    ProcessingCluster,
    ProcessingInput,
    ProcessingJob,
    ProcessingResult,
    Report,
    ReportThreshold,
    Source,
)
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import run
from orchestration.local.run.report import RunReport
from tests.conformance import normal
from tests.conformance.pipelines import LITERAL
from tests.conformance.test_conformance import BACKENDS, Backend

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).with_name("src_processing")
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/words:1"
DATA = "s3://processing/raw"
BY_STEPS: Sequence[Backend] = ("step-functions", "direct")
"""Where a further case adds little: Airflow's tasks perform the same code as the direct driver."""
ALL = 'cat "$1"/*.txt > "$2/all.txt"'
Reports = Mapping[Backend, RunReport]


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        s3 = embedded.client("s3")
        s3.create_bucket(Bucket="processing")
        for number in range(4):
            s3.put_object(Bucket="processing", Key=f"raw/{number}.txt", Body=b"one two\nthree\n")
        yield embedded


def split(
    *arguments: str, hosts: int = 1, threshold: float = 10, on_miss: Any = "fail"
) -> ProcessingJob:
    return ProcessingJob(
        name="split",
        image=IMAGE,
        source=Source.at(SOURCE, "split.py"),
        arguments=arguments,
        inputs={
            "raw": ProcessingInput(uri=DATA, distribution="ShardedByS3Key"),
            "all": ProcessingInput(uri=DATA),
        },
        results={"lines": ProcessingResult(upload="continuous"), "facts": ProcessingResult()},
        report=Report(
            result="facts",
            numbers={"words": "counts.words", "files": "counts.files"},
            texts={"note": "note"},
            threshold=ReportThreshold(
                number="words", direction="max", value=threshold, on_miss=on_miss
            ),
        ),
        environment={"NOTE": LITERAL.replace("\n", " ")},
        cluster=ProcessingCluster(instance_type="ml.m5.large", instance_count=hosts),
    )


def joined(before: ProcessingJob) -> ProcessingJob:
    """A container that runs its own program over what the job before it has written."""
    return ProcessingJob(
        name="join",
        image=IMAGE,
        command=("sh", "-c", ALL, "join"),
        arguments=("/opt/ml/processing/input/lines", "/opt/ml/processing/output/all"),
        inputs={"lines": ProcessingInput(uri=before.outputs.lines)},
        results={"all": ProcessingResult()},
        cluster=ProcessingCluster(instance_type="ml.m5.large"),
    )


def everywhere(
    pipeline: Pipeline,
    aws: EmbeddedAws,
    airflow: LocalAirflow,
    *faults: Fault,
    backends: Sequence[Backend] = BACKENDS,
) -> Reports:
    reports: dict[Backend, RunReport] = {}
    for backend in backends:
        for fault in faults:
            aws.inject(fault)
        name = f"{pipeline.name}-{backend}"
        reports[backend] = run(pipeline, on=backend, aws=aws, airflow=airflow, run_id=name)
    first, *others = reports.values()
    for other in others:
        assert normal.changes(other.calls) == normal.changes(first.calls)
        assert other.state == first.state
        assert normal.anonymous(other.cause) == normal.anonymous(first.cause)
    return reports


def made(name: str, *stages: Any) -> Pipeline:
    return Pipeline(name=name, region="us-east-1", workspace="s3://processing/runs", stages=stages)


def test_two_hosts_share_the_data_and_the_next_job_reads_what_they_wrote(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    first = split(hosts=2)
    pipeline = made("shared", first, joined(first))
    # The job is created, and the response is lost: the second request finds it.
    lost = Fault(
        "sagemaker", "CreateProcessingJob", "InternalFailure", "lost", status=500, after_effect=True
    )
    reports = everywhere(pipeline, aws, airflow, lost)
    for report in reports.values():
        assert (report.state, report.error, report.cause) == ("succeeded", None, None)
        outputs: Any = report.outputs
        shown = outputs["split"]
        assert (shown["words"], shown["files"], shown["passed"]) == (12, 2, True)
        assert shown["note"] == LITERAL.replace("\n", " ")
        assert shown["lines"].endswith("/split/lines/files")
        assert outputs["join"]["job_name"].startswith("shared-join-")
        key = outputs["join"]["all"].removeprefix("s3://processing/") + "/all.txt"
        body = aws.client("s3").get_object(Bucket="processing", Key=key)["Body"].read()
        assert body == b"one two\nthree\n" * 4
    paid = len(aws.state()["sagemaker"]["ProcessingJobs"])
    again = run(pipeline, aws=aws, run_id="shared-direct")
    assert (again.state, len(aws.state()["sagemaker"]["ProcessingJobs"])) == ("succeeded", paid)


def test_a_script_that_fails_fails_the_run_with_its_own_words(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    for report in everywhere(made("fails", split("--exit", "3")), aws, airflow).values():
        assert (report.state, report.error) == ("failed", "JobFailed")
        assert "the data is not usable" in str(report.cause)


def test_a_job_that_is_stopped_fails_the_run(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    for report in everywhere(made("stopped", split("--stop", "now")), aws, airflow).values():
        assert (report.state, report.error) == ("failed", "JobFailed")


def test_a_missed_threshold_stops_what_depends_on_it(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    first = split(threshold=13, on_miss="stop")
    for report in everywhere(made("missed", first, joined(first)), aws, airflow).values():
        assert report.state == "succeeded"
        outputs: Any = report.outputs
        assert (outputs["split"]["passed"], outputs["split"]["words"]) == (False, 12)
        # What did not run is null.
        assert outputs["join"] == {"job_name": None, "all": None}


def test_a_refused_request_fails_the_run(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    words = "Could not access the security group"
    refused = Fault("sagemaker", "CreateProcessingJob", "ValidationException", words)
    for report in everywhere(made("refused", split()), aws, airflow, refused).values():
        assert report.state == "failed"
        assert words in str(report.cause)
        assert len([c for c in report.calls if c.operation == "CreateProcessingJob"]) == 1


def test_the_next_machines_are_tried_where_there_is_no_capacity(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    cluster = ProcessingCluster.model_validate(
        {
            "instance_type": "ml.p3.2xlarge",
            "fallbacks": [{"instance_type": "ml.m5.large"}],
        }
    )
    stage = split().model_copy(update={"cluster": cluster})
    lack = Fault.job("scarce-split", reason="CapacityError: Unable to provision capacity")
    reports = everywhere(made("scarce", stage), aws, airflow, lack, backends=BY_STEPS)
    for report in reports.values():
        assert report.state == "succeeded"
        outputs: Any = report.outputs
        assert outputs["split"]["job_name"].endswith("-b")
