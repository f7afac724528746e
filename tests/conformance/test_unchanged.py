"""A run that would see what the last successful one saw ends early, and well, on every driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from orchestration import DataStaging, Pipeline, S3Destination, parameter
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import RunReport, run
from orchestration.local.run.executions import role
from tests.conformance import pipelines
from tests.conformance.test_conformance import BACKENDS, Backend, Outcome, agree, data, jobs

pytestmark = pytest.mark.slow

KEY = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d"
COPY = "s3://lasting/copy"
DENIED = Fault("datasync", "StartTaskExecution", "InvalidRequestException", "no")


class Accounts:
    """An account for each driver, in which runs follow each other."""

    def __init__(self, stack: ExitStack, airflow: LocalAirflow) -> None:
        self.airflow = airflow
        self.aws: dict[Backend, EmbeddedAws] = {
            backend: stack.enter_context(EmbeddedAws(time_scale=0.003)) for backend in BACKENDS
        }
        for aws in self.aws.values():
            role(aws, "DataSync", "datasync.amazonaws.com")

    def each(self, act: Callable[[EmbeddedAws], Any]) -> None:
        for aws in self.aws.values():
            act(aws)

    def run(self, pipeline: Pipeline, folder: Path, **parameters: Any) -> dict[Backend, Outcome]:
        given = {**pipelines.PARAMETERS, **parameters}
        outcomes = {}
        for backend, aws in self.aws.items():
            report = run(
                pipeline,
                on=backend,
                parameters=given,
                aws=aws,
                uploads={given["data"]: folder},
                airflow=self.airflow,
            )
            outcomes[backend] = Outcome([report], list(report.calls), aws.state())
        agree(outcomes)
        return outcomes


@pytest.fixture
def accounts(airflow: LocalAirflow) -> Iterator[Accounts]:
    with ExitStack() as stack:
        yield Accounts(stack, airflow)


def test_a_run_ends_where_the_last_successful_one_saw_the_same(
    accounts: Accounts, tmp_path: Path
) -> None:
    source, pipeline = data(tmp_path), pipelines.ending()
    accounts.each(lambda aws: aws.inject(DENIED))
    for outcome in accounts.run(pipeline, source).values():
        assert outcome.last.error == "TransferNotStarted"
    first = ""
    # What a failed run saw is forgotten.
    for outcome in accounts.run(pipeline, source).values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        assert len(jobs(outcome, "CopyObject")) == 4
        assert len(jobs(outcome, "StartTaskExecution")) == 1
        first = outcome.outputs["staging"]["fingerprint"]
        assert outcome.outputs["staging"]["unchanged"] is False
        # Other stages, too, show what a run leaves that goes on.
        assert outcome.outputs["staging"]["object_count"] == 4
        assert outcome.outputs["further"]["object_count"] == 4
    for outcome in accounts.run(pipeline, source).values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        staging, further = outcome.outputs["staging"], outcome.outputs["further"]
        assert (staging["fingerprint"], staging["unchanged"]) == (first, True)
        rest = {k: v for k, v in staging.items() if k not in ("fingerprint", "unchanged")}
        assert set(rest.values()) == set(further.values()) == {None}
        assert not [c for c in outcome.calls if c.operation in ("CopyObject", "CreateTask")]
    (source / "train/one.csv").write_text("new")
    for outcome in accounts.run(pipeline, source).values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        assert outcome.outputs["staging"]["unchanged"] is False
        assert outcome.outputs["staging"]["fingerprint"] != first


def encrypted_and_tagged(aws: EmbeddedAws) -> None:
    place = {"Bucket": "lasting", "Key": "copy/train/one.csv"}
    copied = aws.client("s3").head_object(**place)
    assert copied["ServerSideEncryption"] == "aws:kms"
    assert copied["SSEKMSKeyId"] == KEY
    assert copied["StorageClass"] == "STANDARD_IA"
    tags = aws.client("s3").get_object_tagging(**place)["TagSet"]
    assert tags == [{"Key": "team", "Value": "vision + more"}]


def skipping() -> Pipeline:
    staging = DataStaging(
        name="staging",
        source=parameter("data"),
        destination=S3Destination(
            uri=COPY, kms_key=KEY, tags={"team": "vision + more"}, storage_class="STANDARD_IA"
        ),
        unless_unchanged="skip",
    )
    return pipelines.pipeline("skipping", staging)


def test_staging_is_skipped_while_both_ends_are_as_it_left_them(
    accounts: Accounts, tmp_path: Path
) -> None:
    source, pipeline = data(tmp_path), skipping()
    extra = {"Bucket": "lasting", "Key": "copy/extra.csv"}

    def left_over(aws: EmbeddedAws) -> None:
        aws.client("s3").create_bucket(Bucket="lasting")
        aws.client("s3").put_object(**extra, Body=b"x")

    accounts.each(left_over)
    for outcome in accounts.run(pipeline, source).values():
        assert outcome.last.error == "StagedDataDiffers"
        assert outcome.last.cause == (
            "source: 4 objects; staged: 5; these differ: copy/extra.csv 1"
        )
    accounts.each(lambda aws: aws.client("s3").delete_object(**extra))

    def copies() -> list[int]:
        outcomes = accounts.run(pipeline, source).values()
        for outcome in outcomes:
            assert outcome.last.state == "succeeded", outcome.last.cause
            copied = len(jobs(outcome, "CopyObject"))
            assert outcome.outputs["staging"]["unchanged"] is not bool(copied)
            assert outcome.outputs["staging"]["location"] == COPY
        return [len(jobs(outcome, "CopyObject")) for outcome in outcomes]

    assert copies() == [4, 4, 4]
    accounts.each(encrypted_and_tagged)
    assert copies() == [0, 0, 0]


@pytest.mark.parametrize("pipeline", [skipping(), pipelines.ending()], ids=["skip", "end run"])
def test_runs_side_by_side_succeed_and_the_next_one_sees_no_change(
    tmp_path: Path, pipeline: Pipeline
) -> None:
    source = data(tmp_path)
    with EmbeddedAws(time_scale=0.003) as aws, ThreadPoolExecutor() as pool:
        aws.client("s3").create_bucket(Bucket="lasting")
        role(aws, "DataSync", "datasync.amazonaws.com")
        given = pipelines.PARAMETERS

        def one(name: str) -> RunReport:
            uploads = {given["data"]: source}
            return run(pipeline, parameters=given, aws=aws, run_id=name, uploads=uploads)

        def unchanged(report: RunReport) -> object:
            assert report.state == "succeeded", report.cause
            outputs: Any = report.outputs
            return outputs["staging"]["unchanged"]

        assert False in map(unchanged, pool.map(one, ["one", "other"]))
        assert unchanged(one("next")) is True
