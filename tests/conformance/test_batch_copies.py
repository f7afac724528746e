"""Staging by S3 Batch Operations is the same on every driver, pays once, and tells what failed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import run
from tests.conformance import normal, pipelines
from tests.conformance.sites import Site, site_on, wait
from tests.conformance.test_conformance import BACKENDS, Backend

pytestmark = pytest.mark.slow

OLD, NEW = "of long ago", "of today"
KEYS = ("set/train/one.csv", "set/train/two words + ü.csv", "set/holdout/%41&x=1.csv")
SLOW = replace(Fault.job("listed", operation="CreateJob"), delay_s=36_000)
LOST = Fault(
    "s3control", "CreateJob", "InternalServiceException", "lost", status=500, after_effect=True
)


def prepared(aws: EmbeddedAws) -> list[tuple[str, str]]:
    """Write two versions of each object; return the keys with their first ones."""
    s3, data = aws.client("s3"), "incoming"
    for bucket in (data, pipelines.PARAMETERS["bucket"]):
        s3.create_bucket(Bucket=bucket)
    s3.put_bucket_versioning(Bucket=data, VersioningConfiguration={"Status": "Enabled"})
    first = [s3.put_object(Bucket=data, Key=k, Body=OLD.encode())["VersionId"] for k in KEYS]
    for key in KEYS:
        s3.put_object(Bucket=data, Key=key, Body=NEW.encode())
    return list(zip(KEYS, first, strict=True))


def manifest(aws: EmbeddedAws, rows: Sequence[tuple[str, str]]) -> None:
    lines = [f"incoming,{quote(key)},{version}\n" for key, version in rows]
    place = {"Bucket": pipelines.PARAMETERS["bucket"], "Key": "lists/manifest.csv"}
    aws.client("s3").put_object(**place, Body="".join(lines).encode())


@dataclass
class Ran:
    """The runs of one driver: good, with a task that fails, with a fault, and out of time."""

    reports: Mapping[str, Any]
    jobs: list[Mapping[str, Any]]
    copies: Mapping[str, str]
    """The content of the first run's copies."""

    def calls(self, run: str, operation: str) -> list[Any]:
        return [call for call in self.reports[run].calls if call.operation == operation]


def short(pipeline: Pipeline) -> Pipeline:
    """Shorter than a user may ask for: limits are not scaled."""
    stage: Any = pipeline.stages[0]
    destination = stage.destination.model_copy(update={"timeout_s": 2})
    stage = stage.model_copy(update={"destination": destination})
    return pipeline.model_copy(update={"stages": (stage,)})


def performed(backend: Backend, airflow: LocalAirflow) -> Ran:
    pipeline = pipelines.listed(tags={"set": "digits"})
    with EmbeddedAws(time_scale=0.003) as aws:
        rows, reports = prepared(aws), dict[str, Any]()

        def start(name: str, pipeline: Pipeline = pipeline) -> None:
            parameters = pipelines.PARAMETERS
            report = run(pipeline, on=backend, parameters=parameters, aws=aws, airflow=airflow)
            reports[name] = report

        manifest(aws, rows)
        aws.inject(LOST)
        start("good")
        copies = contents(aws)
        manifest(aws, [*rows, ("set/none.csv", rows[0][1])])
        start("task failed")
        aws.inject(Fault.job("listed", operation="CreateJob", reason="Broken: the disk is full"))
        start("job failed")
        aws.inject(SLOW)
        start("late", short(pipeline))
        aws.inject(Fault("s3control", "CreateJob", "BadRequestException", "not like this"))
        start("refused")
        return Ran(reports, aws.state()["s3control"]["Jobs"], copies)


def contents(aws: EmbeddedAws) -> dict[str, str]:
    s3, bucket = aws.client("s3"), pipelines.PARAMETERS["bucket"]
    keys = [key for key in aws.state()["s3"][bucket] if "/staging/" in key]
    return {
        key.partition("/staging/")[2]: s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
        for key in keys
        if normal.JOURNAL not in key
    }


@pytest.fixture(scope="module")
def everywhere() -> Iterator[dict[Backend, Ran]]:
    with LocalAirflow() as airflow:
        yield {backend: performed(backend, airflow) for backend in BACKENDS}


def test_versions_are_copied_the_same_on_every_driver(everywhere: dict[Backend, Ran]) -> None:
    for ran in everywhere.values():
        report = ran.reports["good"]
        assert report.state == "succeeded", report.cause
        assert ran.copies == dict.fromkeys(KEYS, OLD)
        outputs = report.outputs["staging"]
        assert str(outputs["location"]).endswith("/staging/set")
        assert (outputs["object_count"], outputs["total_bytes"]) == (3, 3 * len(OLD))


def test_the_lost_response_of_a_creation_pays_once(everywhere: dict[Backend, Ran]) -> None:
    for ran in everywhere.values():
        first, second = ran.calls("good", "CreateJob")
        assert (first.error_code, second.error_code) == ("InternalServiceException", None)
        # One job for each run but the one that was refused.
        assert len(ran.jobs) == len(ran.reports) - 1


def changes(calls: list[Any]) -> Counter[str]:
    """Return the changes; the ETag of a manifest differs by the versions that it names."""
    texts = normal.changes(calls).elements()
    return Counter(re.sub(r'(?<="ETag": ")[0-9a-f]{32}', "<etag>", text) for text in texts)


def test_every_driver_makes_the_same_changes_and_ends_alike(
    everywhere: dict[Backend, Ran],
) -> None:
    states, *others = everywhere.values()
    for name, report in states.reports.items():
        for other in (ran.reports[name] for ran in others):
            assert changes(report.calls) == changes(other.calls), name
            assert normal.questions(report.calls) == normal.questions(other.calls), name
            assert report.state == other.state, name
            # Step Functions has its own names for what AWS refuses.
            if name != "refused":
                assert report.error == other.error, name
                assert normal.anonymous(report.cause) == normal.anonymous(other.cause), name
            assert normal.anonymous(report.outputs) == normal.anonymous(other.outputs), name


def test_what_failed_is_told_with_the_place_of_the_report(everywhere: dict[Backend, Ran]) -> None:
    for ran in everywhere.values():
        report = ran.reports["task failed"]
        assert report.error == "BatchCopyFailed"
        assert str(report.cause).endswith(": objects copied: 3, not copied: 1")
        assert "/staging.report/job-" in str(report.cause)
        broken = ran.reports["job failed"]
        assert broken.error == "BatchCopyFailed"
        assert "Failed Broken Broken: the disk is full" in str(broken.cause)


def test_a_job_beyond_its_time_is_cancelled(everywhere: dict[Backend, Ran]) -> None:
    for ran in everywhere.values():
        assert ran.reports["late"].error == "TimedOut"
        [cancelled] = ran.calls("late", "UpdateJobStatus")
        assert cancelled.request["RequestedJobStatus"] == "Cancelled"
        assert [job["Status"] for job in ran.jobs][-1] in ("Cancelling", "Cancelled")


def test_a_refusal_keeps_the_services_words(everywhere: dict[Backend, Ran]) -> None:
    for ran in everywhere.values():
        report = ran.reports["refused"]
        assert (report.state, "BadRequest" in str(report.error)) == ("failed", True)
        assert "not like this" in str(report.cause)


@pytest.fixture
def site() -> Iterator[Site]:
    """A deployed pipeline in an account with one job of somebody else."""
    with EmbeddedAws(time_scale=0.005) as aws:
        manifest(aws, prepared(aws))
        aws.provide(roles=[pipelines.PARAMETERS["role"], pipelines.BATCH_ROLE])
        yield site_on(aws, pipelines.listed(), pipelines.PARAMETERS)


def statuses(site: Site) -> list[str]:
    return [job["Status"] for job in site.aws.state()["s3control"]["Jobs"]]


def test_the_companion_cancels_the_job_of_an_ended_execution_alone(site: Site) -> None:
    for _ in range(2):
        site.aws.inject(SLOW)
    ended, going_on = site.start(), site.start()
    wait(lambda: statuses(site) == ["Active", "Active"])
    assert site.sweep() == "SUCCEEDED"
    assert not site.calls("UpdateJobStatus")
    site.stop(ended)
    wait(lambda: "Cancelled" in statuses(site))
    # After the sweep of before.
    site.cleans(times=2)
    assert sorted(statuses(site)) == ["Active", "Cancelled"]
    assert site.status(going_on) == "RUNNING"
