"""Copies by S3 Batch Operations: what a destination may ask for, and what it asks AWS for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from orchestration import DataStaging, S3Destination, parameter
from orchestration.checks.requests import violations
from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, Require, all_steps
from orchestration.stages import Context
from tests.stages.test_copying import KEY, requests

ROLE = "arn:aws:iam::123456789012:role/BatchOperations"
MANIFEST = "s3://lists/digits.csv"
COUNTED: dict[str, Any] = {
    "status": "Complete",
    "code": "",
    "reason": "",
    "succeeded": 3,
    "failed": 0,
}


def staging(source: Any = "s3://incoming/set", **fields: Any) -> DataStaging:
    given: dict[str, Any] = {"copy_by": "batch", "manifest": MANIFEST, **fields}
    return DataStaging(name="staging", source=source, destination=S3Destination(**given))


def problems(stage: DataStaging) -> list[str]:
    return [f"{p.field}: {p.message}" for p in stage.check()]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"manifest": None}, "destination.manifest: is required by copy_by: batch"),
        ({"manifest": "digits.csv"}, "destination.manifest: expected an S3 URI"),
        ({"manifest": "s3://lists/manifest.json"}, "destination.manifest: expected a CSV file"),
        ({"copy_by": "objects"}, "destination.manifest: is for copy_by: batch"),
        (
            {"copy_by": "datasync", "manifest": None, "batch_role": ROLE},
            "destination.batch_role: is for copy_by: batch",
        ),
        (
            {"copy_by": "automatic", "manifest": None, "manifest_versions": True},
            "destination.manifest_versions: is for copy_by: batch",
        ),
        ({"datasync_role": ROLE}, "destination.datasync_role: is for copy_by: datasync"),
        ({"include": ("/a",)}, "destination.include: is for copy_by: datasync only"),
        ({"bucket_kms_key": KEY}, "destination.bucket_kms_key: is for copy_by: datasync"),
        ({"uri": "s3://lasting"}, "destination.uri: expected a prefix below the bucket"),
        ({"uri": "s3://lasting/copy/"}, "destination.uri: expected a prefix below the bucket"),
    ],
)
def test_what_the_service_cannot_do_is_refused(fields: dict[str, Any], problem: str) -> None:
    (found,) = problems(staging(**fields))
    assert found.startswith(problem)


@pytest.mark.parametrize("field", ["fingerprint", "unless_unchanged"])
def test_a_fingerprint_would_be_of_more_than_is_copied(field: str) -> None:
    value = True if field == "fingerprint" else "end_run"
    stage = staging().model_copy(update={field: value})
    assert problems(stage)[0].startswith(f"{field}: copy_by: batch copies what its manifest lists")


def test_requests_are_those_of_the_models_with_every_field() -> None:
    every = {"kms_key": KEY, "tags": {"a": "b"}, "storage_class": "GLACIER_INSTANT_RETRIEVAL"}
    stage = staging(manifest_versions=True, source_account="999988887777", **every)
    assert problems(stage) == []
    context = Context(pipeline="p", workspace="s3://w/p", role=ROLE, region="us-east-1")
    calls = [step for step in stage.lower(context).steps if isinstance(step, Call)]
    assert [call.operation.name for call in calls] == [
        *("HeadBucket", "GetCallerIdentity", "GetObjectAttributes", "CreateJob"),
        *("DescribeJob", "ListObjectsV2"),
    ]
    for call in calls:
        operation = call.operation
        assert list(violations(operation.service, operation.name, operation.request)) == []


def test_the_job_copies_what_the_manifest_lists_to_the_runs_own_place() -> None:
    fields = {"kms_key": KEY, "tags": {"b": "2", "a": "1"}, "storage_class": "STANDARD_IA"}
    job = requests(staging(manifest_versions=True, batch_role=ROLE, **fields))["staging.job"]
    copy = job["Operation"]["S3PutObjectCopy"]
    assert copy["StorageClass"] == "STANDARD_IA"
    assert (copy["SSEAwsKmsKeyId"], copy["BucketKeyEnabled"]) == (KEY, True)
    assert copy["NewObjectTagging"] == [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]
    known = Values({}, {}, run_token="0123456789ab")
    assert evaluate(copy["TargetResource"], known) == "arn:aws:s3:::w"
    assert evaluate(copy["TargetKeyPrefix"], known) == "p/0123456789ab/staging"
    assert job["Manifest"]["Spec"]["Fields"] == ["Bucket", "Key", "VersionId"]
    location = job["Manifest"]["Location"]["ObjectArn"]
    assert evaluate(location, known) == "arn:aws:s3:::lists/digits.csv"
    assert evaluate(job["Report"]["Prefix"], known) == "p/0123456789ab/staging.report"
    assert evaluate(job["ClientRequestToken"], known) == "p-staging-0123456789ab"
    assert (job["RoleArn"], job["ConfirmationRequired"]) == (ROLE, False)


def test_a_copy_object_by_object_has_the_class_that_s3_calls_so() -> None:
    destination = S3Destination(storage_class="GLACIER_INSTANT_RETRIEVAL")
    stage = DataStaging(name="staging", source="s3://incoming/set", destination=destination)
    assert requests(stage)["staging.copy.object"]["StorageClass"] == "GLACIER_IR"


@pytest.mark.parametrize(
    ("source", "location"),
    [
        ("s3://incoming/set", "s3://w/p/0123456789ab/staging/set"),
        ("s3://incoming", "s3://w/p/0123456789ab/staging"),
        (parameter("data"), "s3://w/p/0123456789ab/staging/deep/set"),
    ],
)
def test_the_location_has_the_prefix_that_all_keys_keep(source: Any, location: str) -> None:
    context = Context(pipeline="p", workspace="s3://w/p", role=ROLE, region="us-east-1")
    outputs = staging(source).lower(context).outputs
    known = Values({}, {"data": "s3://incoming/deep/set"}, run_token="0123456789ab")
    assert evaluate(outputs["location"], known) == location
    assert set(DataStaging.outputs.of(staging())) == set(outputs)


def verdict(name: str, **results: Mapping[str, Any]) -> tuple[bool, str]:
    context = Context(pipeline="p", workspace="s3://w/p", role=ROLE, region="us-east-1")
    steps = {step.name: step for step in all_steps_of(context)}
    step = steps[f"staging.{name}"]
    assert isinstance(step, Require)
    known = Values({f"staging.{k}": v for k, v in results.items()}, {}, run_token="0123456789ab")
    return bool(evaluate(step.condition, known)), str(evaluate(step.cause, known))


def all_steps_of(context: Context) -> Any:
    from orchestration.graph import Graph

    return all_steps(Graph(staging().lower(context).steps))


REPORT = "job the-job, report below s3://w/p/0123456789ab/staging.report/job-the-job: "


@pytest.mark.parametrize(
    ("ended", "good", "words"),
    [
        ({}, True, "Complete"),
        ({"status": "Failed", "code": "X", "reason": "so"}, False, "Failed X so"),
        ({"status": "Cancelled"}, False, "Cancelled"),
    ],
)
def test_the_job_must_be_complete(ended: dict[str, Any], good: bool, words: str) -> None:
    holds, cause = verdict("complete", ended={**COUNTED, **ended}, job={"job": "the-job"})
    assert holds is good
    assert cause.strip().endswith(f"{REPORT}{words}")


def test_every_task_must_have_succeeded() -> None:
    context = Context(pipeline="p", workspace="s3://w/p", role=ROLE, region="us-east-1")
    steps = {step.name: step for step in all_steps_of(context)}
    choice, read, end = (steps[f"staging.copied{n}"] for n in ("", ".report", ".failed"))
    results: dict[str, Any] = {
        "staging.job": {"job": "the-job"},
        "staging.ended": {**COUNTED, "failed": 1},
        "staging.copied.report": {"rows": "incoming,set/none.csv,,failed,404,NoSuchKey,gone"},
    }

    def known(**more: Any) -> Values:
        return Values({**results, **more}, {}, run_token="0123456789ab")

    assert evaluate(choice.condition, known()) is True
    assert evaluate(choice.condition, known(**{"staging.ended": COUNTED})) is False
    folder = "p/0123456789ab/staging.report/job-the-job/results/"
    for key, expected in ((f"{folder}1.csv", f"{folder}1.csv"), (None, folder)):
        rows = {"staging.copied.rows": {"key": key}}
        assert evaluate(read.operation.request["Key"], known(**rows)) == expected
    assert evaluate(end.cause, known()) == (
        f"S3 Batch Operations {REPORT}objects copied: 3, not copied: 1; the report begins: "
        "incoming,set/none.csv,,failed,404,NoSuchKey,gone"
    )


@pytest.mark.parametrize(
    ("listed", "good"),
    [
        ({"count": 3, "more": False}, True),
        ({"count": 2, "more": False}, False),
        ({"count": 4, "more": False}, False),
        ({"count": 2, "more": True}, True),
        ({"count": 4, "more": True}, False),
    ],
)
def test_as_many_objects_must_be_there_as_were_copied(listed: dict[str, Any], good: bool) -> None:
    holds, _ = verdict("verified", ended=COUNTED, verify={**listed, "bytes": 9})
    assert holds is good


def test_a_job_of_nothing_is_no_copy() -> None:
    none = {"count": 0, "more": False, "bytes": 0}
    assert not verdict("verified", ended={**COUNTED, "succeeded": 0}, verify=none)[0]
