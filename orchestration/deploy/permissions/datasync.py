"""The permissions that the operations of DataSync need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.deploy.permissions.statements import OWN_REQUEST, OWN_RESOURCE, Grant

_REFERENCE: Final = (
    "https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsdatasync.html"
)
ACCESS: Final = "https://docs.aws.amazon.com/datasync/latest/userguide/create-s3-location.html"
# DataSync reaches a file system by network interfaces, which it makes in its caller's name:
_CALLER: Final = "https://docs.aws.amazon.com/datasync/latest/userguide/security-iam-awsmanpol.html"
_LOOKS: Final = ("NetworkInterfaces", "SecurityGroups", "Subnets")
_MODES: Final = "https://docs.aws.amazon.com/datasync/latest/userguide/choosing-task-mode.html"

_LOCATION: Final = "arn:{partition}:datasync:{region}:{account}:location/*"
_TASK: Final = "arn:{partition}:datasync:{region}:{account}:task/*"
_EC2: Final = "arn:{partition}:ec2:{region}:{account}"
_EXECUTION: Final = "arn:{partition}:datasync:{region}:{account}:task/*/execution/*"


def _own(sid: str, action: str, resource: str) -> tuple[Grant, ...]:
    return (
        Grant(
            sid=sid,
            actions=(f"datasync:{action}",),
            resources=(resource,),
            condition=OWN_RESOURCE,
            source=_REFERENCE,
        ),
    )


def _made(sid: str, action: str, resource: str) -> tuple[Grant, ...]:
    """Return the grants of a creation, which IAM knows no resource of but its tags."""
    return (
        Grant(
            sid=sid,
            actions=(f"datasync:{action}",),
            resources=("*",),
            condition=OWN_REQUEST,
            source=_REFERENCE,
        ),
        Grant(
            sid="TagOwnTransfers",
            actions=("datasync:TagResource",),
            resources=(resource,),
            condition=OWN_REQUEST,
            source=_REFERENCE,
        ),
    )


OPERATIONS: Final[Mapping[tuple[str, str], tuple[Grant, ...]]] = {
    ("datasync", "CreateLocationS3"): (
        *_made("CreateOwnTransfers", "CreateLocationS3", _LOCATION),
        # The caller itself must reach the bucket:
        # https://github.com/hashicorp/terraform-provider-aws/issues/21974
        Grant(
            sid="ReachStagedBuckets",
            actions=("s3:GetBucketLocation", "s3:ListBucket"),
            resources=("{S3BucketArn}",),
            source=ACCESS,
        ),
    ),
    ("datasync", "CreateLocationFsxLustre"): (
        *_made("CreateOwnTransfers", "CreateLocationFsxLustre", _LOCATION),
        Grant(
            sid="FindFileSystemOfTransfer",
            actions=("fsx:DescribeFileSystems", *(f"ec2:Describe{each}" for each in _LOOKS)),
            resources=("*",),
            source=_CALLER,
        ),
        Grant(
            sid="ReachFileSystemOfTransfer",
            actions=(
                "ec2:CreateNetworkInterface",
                "ec2:CreateNetworkInterfacePermission",
                "ec2:DeleteNetworkInterface",
                "ec2:ModifyNetworkInterfaceAttribute",
            ),
            resources=(f"{_EC2}:network-interface/*",),
            source=_CALLER,
        ),
        # Whether DataSync tags the interfaces as it makes them is not documented.
        Grant(
            sid="TagInterfacesOfTransfer",
            actions=("ec2:CreateTags",),
            resources=(f"{_EC2}:network-interface/*",),
            condition={"StringEquals": {"ec2:CreateAction": "CreateNetworkInterface"}},
            source=_CALLER,
        ),
        Grant(
            sid="JoinNetworkOfTransfer",
            actions=("ec2:CreateNetworkInterface",),
            resources=(f"{_EC2}:security-group/*", f"{_EC2}:subnet/*"),
            source=_CALLER,
        ),
    ),
    ("datasync", "CreateTask"): (
        *_made("CreateOwnTransfers", "CreateTask", _TASK),
        Grant(
            sid="FirstEnhancedTransferOfAccount",
            actions=("iam:CreateServiceLinkedRole",),
            resources=(
                "arn:{partition}:iam::{account}:role/aws-service-role/datasync.amazonaws.com/*",
            ),
            condition={"StringEquals": {"iam:AWSServiceName": "datasync.amazonaws.com"}},
            source=_MODES,
        ),
    ),
    ("datasync", "StartTaskExecution"): (
        *_own("RunOwnTransfers", "StartTaskExecution", _TASK),
        Grant(
            sid="TagOwnTransfers",
            actions=("datasync:TagResource",),
            resources=(_EXECUTION,),
            condition=OWN_REQUEST,
            source=_REFERENCE,
        ),
    ),
    ("datasync", "DescribeTask"): _own("RunOwnTransfers", "DescribeTask", _TASK),
    ("datasync", "DeleteTask"): _own("RunOwnTransfers", "DeleteTask", _TASK),
    ("datasync", "DeleteLocation"): _own("DeleteOwnLocations", "DeleteLocation", _LOCATION),
    ("datasync", "DescribeTaskExecution"): _own(
        "FollowOwnTransfers", "DescribeTaskExecution", _EXECUTION
    ),
    ("datasync", "CancelTaskExecution"): _own(
        "FollowOwnTransfers", "CancelTaskExecution", _EXECUTION
    ),
}
"""Permissions by boto3's service name and the operation."""
