"""Locations of DataSync: the two ends of a transfer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from orchestration.catalog.partitions import partition_of
from orchestration.expressions import Function, Result, Tree, apply, join
from orchestration.graph import Call, ErrorPattern, Operation, Output, Retry
from orchestration.refs import Expression
from orchestration.stages.copying.ending import REFUSED
from orchestration.stages.listing import prefix_of
from orchestration.stages.stage import Context
from orchestration.stages.values import Text

_ROLE_IS_NEW: Final = (
    ErrorPattern(REFUSED, "Unable to assume role"),
    ErrorPattern(REFUSED, "access test failed"),
)


def owned(name: str, uri: Text, account: str) -> Call:
    """Return the call that fails unless the bucket of a URI belongs to an account.

    DataSync itself asks for no owner.
    """
    request: dict[str, Tree] = {
        "Bucket": apply(Function.S3_BUCKET, uri),
        "ExpectedBucketOwner": account,
    }
    return Call(name=name, operation=Operation("s3", "HeadBucket", request))


def location_of(call: Call) -> Result:
    """Return the ARN of the location that a call makes."""
    return Result(call.name, "arn")


def in_s3(
    name: str,
    uri: Text,
    role: Tree,
    context: Context,
    *,
    options: Mapping[str, Tree] | None = None,
    key: Tree = None,
    after: tuple[str, ...] = (),
) -> Call:
    """Return the call that makes a location of an S3 prefix, reached by a role.

    ``key`` is the KMS key of the objects there.
    """
    bucket = apply(Function.S3_BUCKET, uri)
    request: dict[str, Tree] = {
        "S3BucketArn": join(f"arn:{partition_of(context.region)}:s3:::", bucket),
        "Subdirectory": join("/", prefix_of(uri)),
        "S3Config": {"BucketAccessRoleArn": role},
        **(options or {}),
    }
    made = _made(name, "CreateLocationS3", request, context)
    return replace(
        made,
        operation=replace(made.operation, decrypts=key),
        retry=Retry(errors=_ROLE_IS_NEW),
        after=after,
    )


def on_lustre(
    name: str,
    system: Tree,
    path: str,
    *,
    owner: Expression[object],
    security_groups: tuple[Text, ...],
    context: Context,
) -> Call:
    """Return the call that makes a location of a directory of a file system.

    ``system`` is its ARN; the security groups are those of the account ``owner``.
    """
    start = f"arn:{partition_of(context.region)}:ec2:{context.region}:"
    request: dict[str, Tree] = {
        "FsxFilesystemArn": system,
        "SecurityGroupArns": [
            join(start, owner, ":security-group/", group) for group in security_groups
        ],
        "Subdirectory": path,
    }
    return _made(name, "CreateLocationFsxLustre", request, context)


def _made(name: str, operation: str, request: Mapping[str, Tree], context: Context) -> Call:
    tags = context.tag_list(name.partition(".")[0])
    return Call(
        name=name,
        operation=Operation("datasync", operation, {**request, "Tags": tags}),
        outputs={"arn": Output(("LocationArn",), kind="string")},
    )
