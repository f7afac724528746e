"""Jobs of S3 Batch Operations copy real objects, and report what they did."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from orchestration.local import EmbeddedAws, Fault
from tests.local.batch.copies import ACCOUNT, SOURCE, TARGET, Copies
from tests.patience import PATIENCE_S

SLOW = replace(Fault.job("slow", operation="CreateJob"), delay_s=36_000_000)


@pytest.fixture(scope="module")
def copies() -> Iterator[Copies]:
    with EmbeddedAws(time_scale=0.001) as aws:
        yield Copies(aws)


def counts(job: dict[str, object]) -> list[int]:
    progress: dict[str, int] = job["ProgressSummary"]  # type: ignore[assignment]
    return [progress[f"{n}"] for n in ("NumberOfTasksSucceeded", "NumberOfTasksFailed")]


def test_versions_are_copied_under_their_whole_keys(copies: Copies) -> None:
    key = "set/two words + ü%41&x=1.csv"
    first = copies.put(key, "first")
    copies.put(key, "second")
    plain = copies.put("set/plain.csv", "plain")
    manifest = copies.manifest((key, first), ("set/plain.csv", plain))
    job = copies.end(copies.start(manifest))
    assert (job["Status"], counts(job)) == ("Complete", [2, 0])
    assert copies.read(f"to/{key}") == "first"
    assert copies.keys("to/set/") == ["to/set/plain.csv", f"to/{key}"]


def test_without_versions_the_latest_is_copied_with_class_and_tags(copies: Copies) -> None:
    copies.put("latest.csv", "old")
    copies.put("latest.csv", "new")
    tags = [{"Key": "set", "Value": "digits"}]
    more = {"StorageClass": "GLACIER_IR", "NewObjectTagging": tags, "TargetKeyPrefix": "classed"}
    job = copies.end(copies.start(copies.manifest(("latest.csv",)), copy=more))
    assert job["Status"] == "Complete"
    place = {"Bucket": TARGET, "Key": "classed/latest.csv"}
    assert copies.read(place["Key"]) == "new"
    assert copies.s3.head_object(**place)["StorageClass"] == "GLACIER_IR"
    assert copies.s3.get_object_tagging(**place)["TagSet"] == tags


def test_the_report_lists_tasks_by_their_end(copies: Copies) -> None:
    version = copies.put("reported a.csv", "x")
    rows = [("reported a.csv", version), ("gone.csv", "none"), ("reported a.csv", "")]
    identifier = copies.start(copies.manifest(*rows), copy={"TargetKeyPrefix": "reported"})
    job = copies.end(identifier)
    assert (job["Status"], counts(job)) == ("Complete", [1, 2])
    report = json.loads(copies.read(f"reports/job-{identifier}/manifest.json"))
    assert [r["TaskExecutionStatus"] for r in report["Results"]] == ["succeeded", "failed"]
    good, bad = (copies.read(result["Key"]) for result in report["Results"])
    assert good == f"{SOURCE},reported+a.csv,{version},succeeded,,200,Successful\n"
    first, second = bad.splitlines()
    assert first.startswith(f"{SOURCE},gone.csv,none,failed,NoSuchVersion,404,")
    missing = "failed,InvalidRequest,400,Task failed due to missing VersionId"
    assert second == f"{SOURCE},reported+a.csv,,{missing}"


def test_equal_requests_with_one_token_are_one_job(copies: Copies) -> None:
    copies.put("once.csv", "x")
    manifest = copies.manifest(("once.csv",), key="once.manifest.csv")
    jobs = {copies.start(manifest, ClientRequestToken="once") for _ in range(2)}
    assert len(jobs) == 1


def test_a_cancelled_job_ends_so_and_is_found_by_its_tags(copies: Copies) -> None:
    copies.put("slow.csv", "x")
    copies.aws.inject(SLOW)
    tags = [{"Key": "orchestration:run", "Value": "0123456789ab"}]
    manifest = copies.manifest(("slow.csv",))
    identifier = copies.start(manifest, Description="slow-copy", Tags=tags)
    under_way = {"AccountId": ACCOUNT, "JobStatuses": ["New", "Preparing", "Ready", "Active"]}
    # Jobs of other tests may be under way, too.
    listed = {job["JobId"]: job for job in copies.api.list_jobs(**under_way)["Jobs"]}
    assert listed[identifier]["Description"] == "slow-copy"
    assert copies.api.get_job_tagging(AccountId=ACCOUNT, JobId=identifier)["Tags"] == tags
    copies.cancel(identifier)
    assert copies.end(identifier)["Status"] == "Cancelled"
    assert identifier not in {job["JobId"] for job in copies.api.list_jobs(**under_way)["Jobs"]}


def test_listings_come_in_pages(copies: Copies) -> None:
    copies.put("paged.csv", "x")
    manifest = copies.manifest(("paged.csv",), key="paged.manifest.csv")
    made = {copies.start(manifest) for _ in range(3)}
    found, token = set[str](), dict[str, str]()
    while True:
        page = copies.api.list_jobs(AccountId=ACCOUNT, MaxResults=2, **token)
        assert len(page["Jobs"]) <= 2
        found |= {job["JobId"] for job in page["Jobs"]}
        if "NextToken" not in page:
            break
        token = {"NextToken": page["NextToken"]}
    assert made <= found


def test_a_process_of_its_own_reaches_the_jobs_even_with_a_proxy(copies: Copies) -> None:
    """The client puts the account before the host, which is an address."""
    program = "import boto3; print(boto3.client('s3control').list_jobs(AccountId='123456789012'))"
    environment = copies.aws.environment() | {"HTTP_PROXY": "http://192.0.2.1:9"}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert "'Jobs':" in ran.stdout, ran.stderr


def test_the_role_of_a_copy_may_name_its_jobs(copies: Copies) -> None:
    iam = copies.aws.client("iam")

    def allow(resource: str) -> None:
        statement = {"Effect": "Allow", "Action": "s3:DescribeJob", "Resource": resource}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_role_policy(RoleName="Copies", PolicyName="jobs", PolicyDocument=policy)

    allow(f"arn:aws:s3:us-east-1:{ACCOUNT}:job/*")
    with pytest.raises(iam.exceptions.MalformedPolicyDocumentException):
        allow(f"arn:aws:s3:us-east-1:{ACCOUNT}:bucket")


@pytest.mark.parametrize("stored", ["GLACIER", "DEEP_ARCHIVE"])
def test_an_archived_object_is_copied_once_it_is_restored(copies: Copies, stored: str) -> None:
    place = {"Bucket": SOURCE, "Key": f"{stored}.csv"}
    copies.s3.put_object(**place, Body=b"x", StorageClass=stored)
    for restored in (False, True):
        if restored:
            copies.s3.restore_object(**place, RestoreRequest={"Days": 1})
        job = copies.end(copies.start(copies.manifest((place["Key"],))))
        assert counts(job) == ([1, 0] if restored else [0, 1])
