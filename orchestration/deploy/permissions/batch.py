"""The permissions that jobs of S3 Batch Operations need of whoever creates them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.deploy.permissions.statements import OWN_REQUEST, OWN_RESOURCE, Grant

ACCESS: Final = (
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/batch-ops-iam-role-policies.html"
)
_TAGS: Final = (
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/batch-ops-job-tags-examples.html"
)
_TAGGED: Final = (
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/troubleshooting-batch-operations.html"
)
_REFERENCE: Final = (
    "https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html"
)
_JOB: Final = "arn:{partition}:s3:{region}:{account}:job/*"


_COPIES: Final = {"s3:RequestJobOperation": "S3PutObjectCopy"}


def _own(action: str) -> tuple[Grant, ...]:
    return (
        Grant(
            sid="FollowOwnCopies",
            actions=(f"s3:{action}",),
            resources=(_JOB,),
            condition=OWN_RESOURCE,
            source=_REFERENCE,
        ),
    )


OPERATIONS: Final[Mapping[tuple[str, str], tuple[Grant, ...]]] = {
    ("s3control", "CreateJob"): (
        # IAM knows no resource of a creation but its tags, which take an action of their own.
        Grant(
            sid="CreateOwnCopies",
            actions=("s3:CreateJob",),
            resources=("*",),
            condition={"StringEquals": {**OWN_REQUEST["StringEquals"], **_COPIES}},
            source=_TAGS,
        ),
        Grant(
            sid="TagOwnCopies",
            actions=("s3:PutJobTagging",),
            resources=(_JOB,),
            condition=OWN_REQUEST,
            source=_TAGGED,
        ),
    ),
    ("s3control", "DescribeJob"): _own("DescribeJob"),
    ("s3control", "UpdateJobStatus"): _own("UpdateJobStatus"),
}
"""Permissions by boto3's service name and the operation."""
