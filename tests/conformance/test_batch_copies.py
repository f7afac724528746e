"""Staging by S3 Batch Operations is the same on every driver, pays once, and tells what failed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
CREATE = ("s3control", "CreateJob")
LOST = Fault(*CREATE, "InternalServiceException", "lost", status=500, after_effect=True)
UNSEEN = Fault(
    *("s3", "ListObjectsV2", "AccessDenied", "not authorized"),
    status=403,
    times=100,
    containing="/staging/",
)
THROTTLED = Fault(*CREATE, "TooManyRequestsException", "Rate exceeded", times=100)
UNNAMED = ("refused", "throttled throughout", "denied")
"""The runs that end by an error of AWS that Step Functions calls by a name of its own."""


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
    twice: list[str]
    """The ends of two attempts of one run, whose first one could not compare what was copied."""

    def calls(self, run: str, operation: str) -> list[Any]:
        return [call for call in self.reports[run].calls if call.operation == operation]


def short(pipeline: Pipeline) -> Pipeline:
    """Shorter than a user may ask for: limits are not scaled."""
    stage: Any = pipeline.stages[0]
    destination = stage.destination.model_copy(update={"timeout_s": 2})
    stage = stage.model_copy(update={"destination": destination})
    return pipeline.model_copy(update={"stages": (stage,)})


@contextmanager
def meanwhile(deed: Callable[[], None]) -> Iterator[None]:
    """Do something beside what the body does."""
    with ThreadPoolExecutor() as pool:
        done = pool.submit(deed)
        yield
        done.result()


def cancelled(aws: EmbeddedAws) -> None:
    """Cancel the job that is active, as a person would."""

    def active() -> list[str]:
        jobs = aws.state()["s3control"]["Jobs"]
        return [job["JobId"] for job in jobs if job["Status"] == "Active"]

    wait(lambda: bool(active()))
    [job] = active()
    aws.client("s3control").update_job_status(
        AccountId="123456789012", JobId=job, RequestedJobStatus="Cancelled"
    )


def performed(backend: Backend, airflow: LocalAirflow) -> Ran:
    pipeline = pipelines.listed(tags={"set": "digits"})
    with EmbeddedAws(time_scale=0.003) as aws:
        rows, reports = prepared(aws), dict[str, Any]()

        def start(name: str, pipeline: Pipeline = pipeline, run_id: str | None = None) -> None:
            reports[name] = run(
                pipeline,
                on=backend,
                parameters=pipelines.PARAMETERS,
                aws=aws,
                airflow=airflow,
                run_id=run_id,
            )

        manifest(aws, rows)
        aws.inject(LOST)
        start("good")
        copies = contents(aws)
        aws.inject(UNSEEN)
        start("first", run_id="twice")
        aws.clear_faults()
        start("second", run_id="twice")
        twice = [reports.pop(name).state for name in ("first", "second")]
        manifest(aws, [*rows, ("set/none.csv", rows[0][1])])
        start("task failed")
        aws.inject(Fault.job("listed", operation="CreateJob", reason="Broken: the disk is full"))
        start("job failed")
        aws.inject(SLOW)
        start("late", short(pipeline))
        aws.inject(Fault(*CREATE, "BadRequestException", "not like this"))
        start("refused")
        manifest(aws, rows)
        aws.inject(replace(THROTTLED, times=2))
        start("throttled")
        aws.inject(THROTTLED)
        start("throttled throughout")
        aws.clear_faults()
        aws.inject(Fault(*CREATE, "AccessDenied", "not authorized", status=403, times=100))
        start("denied")
        aws.clear_faults()
        with meanwhile(lambda: cancelled(aws)):
            aws.inject(SLOW)
            start("cancelled")
        return Ran(reports, aws.state()["s3control"]["Jobs"], copies, twice)


def contents(aws: EmbeddedAws) -> dict[str, str]:
    s3, bucket = aws.client("s3"), pipelines.PARAMETERS["bucket"]
    keys = [key for key in aws.state()["s3"][bucket] if "/staging/" in key]
    return {
        key.partition("/staging/")[2]: s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
        for key in keys
        if normal.JOURNAL not in key
    }


@pytest.fixture(scope="module")
def everywhere(airflow: LocalAirflow) -> dict[Backend, Ran]:
    return {backend: performed(backend, airflow) for backend in BACKENDS}


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
        # One job for each run whose job was not refused, and one for both attempts of another.
        assert len(ran.jobs) == len(ran.reports) - len(UNNAMED) + 1


def test_another_attempt_gets_the_job_of_the_first(everywhere: dict[Backend, Ran]) -> None:
    for ran in everywhere.values():
        # How many jobs there are is tested above.
        assert ran.twice == ["failed", "succeeded"]


def alike(texts: Iterable[str]) -> Counter[str]:
    """Return texts without the digests of manifests and reports, which name versions."""
    return Counter(re.sub(r"\b(?:[0-9a-f]{40}|[0-9a-f]{32})\b", "<digest>", t) for t in texts)


def sent(report: Any, name: str) -> Counter[str]:
    """Return the changes; what is refused in vain is sent as often as each driver's SDK says."""
    calls = normal.changes(report.calls)
    return alike(calls if name in UNNAMED else calls.elements())


def test_every_driver_makes_the_same_changes_and_ends_alike(
    everywhere: dict[Backend, Ran],
) -> None:
    states, *others = everywhere.values()
    for name, report in states.reports.items():
        for other in (ran.reports[name] for ran in others):
            assert sent(report, name) == sent(other, name), name
            mine, theirs = (normal.questions(each.calls) for each in (report, other))
            assert alike(mine) == alike(theirs), name
            assert report.state == other.state, name
            # Step Functions has its own names for what AWS refuses.
            if name not in UNNAMED:
                assert report.error == other.error, name
                assert normal.anonymous(report.cause) == normal.anonymous(other.cause), name
            assert normal.anonymous(report.outputs) == normal.anonymous(other.outputs), name


def test_what_failed_is_told_with_the_place_of_the_report(everywhere: dict[Backend, Ran]) -> None:
    for ran in everywhere.values():
        report = ran.reports["task failed"]
        assert report.error == "BatchCopyFailed"
        counts, _, rows = str(report.cause).partition("; the report begins: ")
        assert counts.endswith(": objects copied: 3, not copied: 1")
        assert rows.startswith("incoming,set/none.csv,")
        assert "NoSuchVersion,404" in rows
        assert "/staging.report/job-" in str(report.cause)
        broken = ran.reports["job failed"]
        assert broken.error == "BatchCopyFailed"
        assert "Failed Broken Broken: the disk is full" in str(broken.cause)


def test_a_job_beyond_its_time_is_cancelled(everywhere: dict[Backend, Ran]) -> None:
    for ran in everywhere.values():
        assert ran.reports["late"].error == "TimedOut"
        [cancelled] = ran.calls("late", "UpdateJobStatus")
        assert cancelled.request["RequestedJobStatus"] == "Cancelled"
        job = ran.jobs[list(ran.reports).index("late") + 1]
        assert job["Status"] in ("Cancelling", "Cancelled")


def test_a_refusal_keeps_the_services_words(everywhere: dict[Backend, Ran]) -> None:
    for ran in everywhere.values():
        report = ran.reports["refused"]
        assert (report.state, "BadRequest" in str(report.error)) == ("failed", True)
        assert "not like this" in str(report.cause)


def test_throttling_is_got_over_unless_it_goes_on(everywhere: dict[Backend, Ran]) -> None:
    for ran in everywhere.values():
        answers = [call.error_code for call in ran.calls("throttled", "CreateJob")]
        assert answers == [THROTTLED.error_code, THROTTLED.error_code, None]
        assert ran.reports["throttled"].state == "succeeded"
        report = ran.reports["throttled throughout"]
        assert (report.state, "Rate exceeded" in str(report.cause)) == ("failed", True)
        assert len(ran.calls("throttled throughout", "CreateJob")) >= 5
        report = ran.reports["denied"]
        assert (report.state, "not authorized" in str(report.cause)) == ("failed", True)


def test_a_job_that_somebody_cancels_fails_the_run(everywhere: dict[Backend, Ran]) -> None:
    for ran in everywhere.values():
        report = ran.reports["cancelled"]
        assert (report.state, report.error) == ("failed", "BatchCopyFailed")
        assert str(report.cause).strip().endswith(": Cancelled")


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
