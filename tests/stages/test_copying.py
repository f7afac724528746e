"""Copies from S3 to S3: what a destination may ask for, and what it asks AWS for."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import (
    DataStaging,
    ExistingFileSystem,
    Pipeline,
    S3Destination,
    join,
    parameter,
)
from orchestration.backends import stepfunctions
from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, Graph, Require, all_steps
from orchestration.stages import Context

KEY = "arn:aws:kms:eu-west-1:123456789012:key/0a1b2c3d"
ROLE = "arn:aws:iam::123456789012:role/DataSync"


def staging(source: Any = "s3://incoming/set", **fields: Any) -> DataStaging:
    return DataStaging(name="staging", source=source, destination=S3Destination(**fields))


def problems(**fields: Any) -> list[str]:
    return [f"{p.field}: {p.message}" for p in staging(**fields).check()]


def requests(stage: DataStaging, region: str = "us-east-1") -> dict[str, Any]:
    context = Context(pipeline="p", workspace="s3://w/p", role="the-role", region=region)
    steps = all_steps(Graph(stage.lower(context).steps))
    return {s.name: s.operation.request for s in steps if isinstance(s, Call)}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"datasync_role": ROLE}, "destination.datasync_role: is for copy_by: datasync"),
        ({"include": ("/a",)}, "destination.include: is for copy_by: datasync only"),
        (
            {"copy_by": "automatic", "exclude": ("*.tmp",)},
            "destination.exclude: is for copy_by: datasync only",
        ),
        ({"copy_by": "datasync", "kms_key": KEY}, "destination.kms_key: DataSync encrypts as"),
        ({"copy_by": "automatic", "tags": {"a": "b"}}, "destination.tags: is for copy_by: objects"),
        (
            {"copy_by": "automatic", "bucket_kms_key": KEY},
            "destination.bucket_kms_key: is for copy_by: datasync; say kms_key",
        ),
        ({"tags": {"aws:a": "b"}}, "destination.tags.aws:a: expected a key of up to 128"),
        ({"tags": {"a": "b?"}}, "destination.tags.a: expected a key of up to 128"),
        ({"copy_by": "datasync", "include": ("*.csv",)}, "destination.include[0]: '*.csv'"),
        (
            {"copy_by": "datasync", "exclude": ("/b", "/a|/b")},
            "destination.exclude[1]: expected one pattern, got '/a|/b'",
        ),
    ],
)
def test_what_no_way_of_copying_can_do_is_refused(fields: dict[str, Any], problem: str) -> None:
    (found,) = problems(**fields)
    assert found.startswith(problem)


def test_datasync_takes_filters_with_wildcards_in_their_places() -> None:
    escaped = r"/odd\|name"
    assert problems(copy_by="datasync", include=("/a*", escaped), exclude=("*.tmp", "/x")) == []


def test_filters_are_one_text_and_the_role_is_the_pipelines_by_default() -> None:
    sent = requests(staging(copy_by="datasync", include=("/a*", "/b"), exclude=("*.tmp",)))
    assert sent["staging.task"]["Includes"] == [{"FilterType": "SIMPLE_PATTERN", "Value": "/a*|/b"}]
    assert sent["staging.task"]["Excludes"] == [{"FilterType": "SIMPLE_PATTERN", "Value": "*.tmp"}]
    assert sent["staging.source"]["S3Config"] == {"BucketAccessRoleArn": "the-role"}
    assert "S3StorageClass" not in sent["staging.target"]


def test_a_storage_class_is_that_of_the_copies_on_either_way() -> None:
    sent = requests(staging(copy_by="automatic", storage_class="STANDARD_IA"))
    assert sent["staging.copy.object"]["StorageClass"] == "STANDARD_IA"
    assert sent["staging.target"]["S3StorageClass"] == "STANDARD_IA"
    assert "S3StorageClass" not in sent["staging.source"]


def test_copies_are_encrypted_and_tagged_and_read_from_the_expected_account() -> None:
    sent = requests(
        staging(kms_key=KEY, tags={"b": "x y", "a": "ü&="}, source_account="999988887777")
    )
    copy = sent["staging.copy.object"]
    assert (copy["ServerSideEncryption"], copy["SSEKMSKeyId"]) == ("aws:kms", KEY)
    assert copy["BucketKeyEnabled"] is True
    assert copy["Tagging"] == "a=%C3%BC%26%3D&b=x%20y"
    assert copy["TaggingDirective"] == "REPLACE"
    assert copy["ExpectedSourceBucketOwner"] == "999988887777"
    assert sent["staging.list"]["ExpectedBucketOwner"] == "999988887777"
    assert "ExpectedBucketOwner" not in sent["staging.verify"]


def test_datasync_begins_only_in_a_bucket_of_the_expected_account() -> None:
    stage = staging(copy_by="datasync", source_account="999988887777")
    context = Context(pipeline="p", workspace="s3://w/p", role="the-role", region="us-east-1")
    steps = {step.name: step for step in stage.lower(context).steps}
    checked = steps["staging.owned"]
    assert isinstance(checked, Call)
    assert checked.operation.name == "HeadBucket"
    assert checked.operation.request["ExpectedBucketOwner"] == "999988887777"
    assert steps["staging.source"].after == ("staging.owned",)


def test_step_functions_has_its_own_name_for_the_key() -> None:
    pipeline = Pipeline(
        name="p",
        role="arn:aws:iam::123456789012:role/SageMaker",
        workspace="s3://w/p",
        stages=[staging(kms_key=KEY)],
    )
    text = stepfunctions.dumps(stepfunctions.render(pipeline.lower()))
    assert f'"SsekmsKeyId": "{KEY}"' in text
    assert "SSEKMSKeyId" not in text


def test_buckets_are_named_in_the_partition_of_the_region() -> None:
    stage = staging(source=join("s3://", parameter("bucket"), "/set"), copy_by="datasync")
    for region, start in (("us-east-1", "arn:aws:s3"), ("cn-north-1", "arn:aws-cn:s3")):
        arn = requests(stage, region)["staging.source"]["S3BucketArn"]
        assert str(arn.parts[0]).startswith(start)


def test_only_ways_that_count_have_counts() -> None:
    counted = {"location", "object_count", "total_bytes"}
    for way, outputs in (("objects", counted), ("datasync", counted), ("automatic", {"location"})):
        assert set(DataStaging.outputs.of(staging(copy_by=way))) == outputs


def filling(**fields: Any) -> DataStaging:
    destination = {"file_system_id": "fs-0123456789abcdef0", "security_groups": ("sg-1",), **fields}
    return DataStaging(
        name="staging", source="s3://incoming/set", destination=ExistingFileSystem(**destination)
    )


@pytest.mark.parametrize(
    ("fields", "region", "problem"),
    [
        ({"security_groups": ()}, "us-east-1", "destination.security_groups: DataSync reaches"),
        ({}, None, "destination.security_groups: DataSync asks for their ARNs"),
        (
            {"security_groups": ("default",)},
            "us-east-1",
            "destination.security_groups[0]: expected the id of a security group",
        ),
        ({"mount_path": "/a/../b"}, "us-east-1", "destination.mount_path: '/a/../b' is no"),
    ],
)
def test_what_datasync_cannot_do_with_a_file_system_is_refused(
    fields: dict[str, Any], region: str | None, problem: str
) -> None:
    context = Context(pipeline="p", workspace="s3://w/p", role="r", region=region)
    (found,) = [f"{p.field}: {p.message}" for p in filling(**fields).check(context)]
    assert found.startswith(problem)


@pytest.mark.parametrize("field", ["security_groups", "datasync_role", "source_kms_key"])
def test_a_file_system_that_is_mounted_as_it_is_needs_no_access(field: str) -> None:
    fields: dict[str, Any] = {
        "security_groups": ("sg-1",),
        "datasync_role": ROLE,
        "source_kms_key": KEY,
    }
    destination = ExistingFileSystem(file_system_id="fs-1", **{field: fields[field]})
    (found,) = DataStaging(name="staging", destination=destination).check()
    assert found.field == f"destination.{field}"
    assert found.message.startswith("is for copying a source onto the file system")


def test_a_file_system_is_filled_in_basic_mode_and_by_its_security_groups() -> None:
    sent = requests(filling(mount_path="/set"), "cn-north-1")
    assert sent["staging.task"]["TaskMode"] == "BASIC"
    assert sent["staging.target"]["Subdirectory"] == "/set"
    (group,) = sent["staging.target"]["SecurityGroupArns"]
    start, _owner, end = group.parts
    assert (start, end) == ("arn:aws-cn:ec2:cn-north-1:", ":security-group/sg-1")
    assert "Uid" not in sent["staging.task"]["Options"]


COPIED = {"transferred": 5, "skipped": 0, "verified": 5, "bytes": 90}


@pytest.mark.parametrize(
    ("counts", "same"),
    [
        ({}, True),
        ({"verified": 3}, False),
        ({"transferred": 3, "verified": 9}, False),
        ({"bytes": 89}, False),
        ({"transferred": 0, "skipped": 5, "bytes": 0}, True),
    ],
)
def test_counts_of_a_filled_file_system_are_compared_with_the_listing(
    counts: dict[str, int], same: bool
) -> None:
    context = Context(pipeline="p", workspace="s3://w/p", role="the-role", region="us-east-1")
    steps = {step.name: step for step in all_steps(Graph(filling().lower(context).steps))}
    compared = steps["staging.compared"]
    assert isinstance(compared, Require)
    results = {"staging.list": {"files": 4, "bytes": 90}, "staging.copied": {**COPIED, **counts}}
    assert evaluate(compared.condition, Values(results, {})) is same


GIB = 1024**3


@pytest.mark.parametrize(
    ("sizes", "usable"),
    [([], False), ([1, 5 * GIB, 5 * GIB], True), ([1, 5 * GIB + 1], False)],
)
def test_objects_that_one_request_cannot_copy_are_refused_before_any_is_copied(
    sizes: list[int], usable: bool
) -> None:
    context = Context(pipeline="p", workspace="s3://w/p", role="the-role", region="us-east-1")
    steps = {step.name: step for step in staging().lower(context).steps}
    required = steps["staging.usable"]
    assert isinstance(required, Require)
    listed: Any = {"objects": [{"Key": "a", "Size": n} for n in sizes], "truncated": False}
    environment = Values({"staging.list": listed}, {})
    assert evaluate(required.condition, environment) is usable
    cause = str(evaluate(required.cause, environment))
    assert "copy_by: datasync" in cause
    assert cause.endswith(f"the largest of {max([0, *sizes])} bytes")
