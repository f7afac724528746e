"""Needs of the services that move data: FSx, DataSync and S3 Batch Operations.

What a service itself does in its caller's name (tags, roles linked to it, network interfaces) is
among them; names that only the service gives stand in for themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestration.local.policies.evaluation import Need


class Unknown(LookupError):
    """An operation whose needs are not written down here."""

    def __init__(self, service: str, operation: str) -> None:
        super().__init__(f"what does {service}:{operation} need?")


def file_systems(
    operation: str, request: Mapping[str, Any], place: str, account: str
) -> Iterator[Need]:
    """Yield what a call of FSx needs."""
    tags = {f"aws:RequestTag/{tag['Key']}": tag["Value"] for tag in request.get("Tags", ())}
    one = request.get("FileSystemId", "fs-0123456789abcdef0")
    system = f"arn:aws:fsx:{place}:file-system/{one}"
    link = f"arn:aws:fsx:{place}:association/{one}/dra-0123456789abcdef0"
    task = f"arn:aws:fsx:{place}:task/{request.get('TaskId', 'task-0123456789abcdef0')}"
    role = f"arn:aws:iam::{account}:role/aws-service-role/"
    data = f"{role}s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_{one}"
    match operation:
        case "CreateFileSystem":
            yield Need("fsx:CreateFileSystem", system, tags)
            yield Need("fsx:TagResource", system, tags)
            yield Need(
                "ec2:GetSecurityGroupsForVpc",
                f"arn:aws:ec2:{place}:vpc/vpc-0123456789abcdef0",
                {"aws:CalledVia": "fsx.amazonaws.com"},
            )
            yield Need(
                "iam:CreateServiceLinkedRole",
                f"{role}fsx.amazonaws.com/AWSServiceRoleForAmazonFSx",
                {"iam:AWSServiceName": "fsx.amazonaws.com"},
            )
        case "CreateDataRepositoryAssociation":
            yield Need("fsx:CreateDataRepositoryAssociation", system, tags)
            yield Need("fsx:CreateDataRepositoryAssociation", link, tags)
            yield Need("fsx:TagResource", link, tags)
            yield Need("iam:CreateServiceLinkedRole", data)
            yield Need("iam:AttachRolePolicy", data)
            yield Need("iam:PutRolePolicy", data)
        case "CreateDataRepositoryTask":
            yield Need("fsx:CreateDataRepositoryTask", system, tags)
            yield Need("fsx:CreateDataRepositoryTask", task, tags)
            yield Need("fsx:TagResource", task, tags)
        case "CancelDataRepositoryTask":
            yield Need("fsx:CancelDataRepositoryTask", task)
        case "TagResource":
            yield Need("fsx:TagResource", str(request["ResourceARN"]), tags)
        case "DeleteFileSystem":
            yield Need("fsx:DeleteFileSystem", system)
        case (
            "DescribeFileSystems"
            | "DescribeDataRepositoryAssociations"
            | "DescribeDataRepositoryTasks"
        ):
            yield Need(f"fsx:{operation}", "*")
        case _:
            raise Unknown("fsx", operation)


def transfers(
    operation: str, request: Mapping[str, Any], place: str, account: str
) -> Iterator[Need]:
    """Yield what a call of DataSync needs."""
    tags = {f"aws:RequestTag/{tag['Key']}": tag["Value"] for tag in request.get("Tags", ())}
    arn = f"arn:aws:datasync:{place}"
    task, location = f"{arn}:task/task-1", f"{arn}:location/loc-1"
    match operation:
        case "CreateLocationS3" | "CreateLocationFsxLustre":
            yield Need(f"datasync:{operation}", "*", tags)
            yield Need("datasync:TagResource", location, tags)
            yield from _reached(request, place)
        case "CreateTask":
            for resource in ("SourceLocationArn", "DestinationLocationArn"):
                yield Need("datasync:CreateTask", request[resource], tags)
            yield Need("datasync:TagResource", task, tags)
            yield Need(
                "iam:CreateServiceLinkedRole",
                f"arn:aws:iam::{account}:role/aws-service-role/datasync.amazonaws.com/x",
                {"iam:AWSServiceName": "datasync.amazonaws.com"},
            )
        case "StartTaskExecution":
            yield Need("datasync:StartTaskExecution", request["TaskArn"], tags)
            yield Need("datasync:TagResource", f"{task}/execution/exec-1", tags)
        case "DescribeTask" | "DeleteTask":
            yield Need(f"datasync:{operation}", request["TaskArn"])
        case "DescribeTaskExecution" | "CancelTaskExecution":
            yield Need(f"datasync:{operation}", request["TaskExecutionArn"])
        case "DeleteLocation":
            yield Need("datasync:DeleteLocation", request["LocationArn"])
        case "ListTasks" | "ListTaskExecutions":
            yield Need(f"datasync:{operation}", "*")
        case "ListTagsForResource":
            yield Need(f"datasync:{operation}", request["ResourceArn"])
        case _:
            raise Unknown("datasync", operation)


def _reached(location: Mapping[str, Any], place: str) -> Iterator[Need]:
    if "S3BucketArn" in location:
        yield Need("s3:ListBucket", location["S3BucketArn"])
        yield Need("s3:GetBucketLocation", location["S3BucketArn"])
        passed = {"iam:PassedToService": "datasync.amazonaws.com"}
        yield Need("iam:PassRole", location["S3Config"]["BucketAccessRoleArn"], passed)
        return
    yield Need("fsx:DescribeFileSystems", "*")
    for each in ("NetworkInterfaces", "SecurityGroups", "Subnets"):
        yield Need(f"ec2:Describe{each}", "*")
    for action in ("CreateNetworkInterface", "DeleteNetworkInterface"):
        yield Need(f"ec2:{action}", f"arn:aws:ec2:{place}:network-interface/eni-1")
    for group in location["SecurityGroupArns"]:
        yield Need("ec2:CreateNetworkInterface", group)


def copies(operation: str, request: Mapping[str, Any], place: str) -> Iterator[Need]:
    """Yield what a call of S3 Batch Operations needs."""
    job = f"arn:aws:s3:{place}:job/{request.get('JobId', 'any')}"
    if operation == "ListJobs":
        yield Need("s3:ListJobs", "*")
        return
    if operation != "CreateJob":
        yield Need(f"s3:{operation}", job)
        return
    tags = {f"aws:RequestTag/{tag['Key']}": tag["Value"] for tag in request["Tags"]}
    (kind,) = request["Operation"]
    yield Need("s3:CreateJob", "*", {**tags, "s3:RequestJobOperation": kind})
    yield Need("s3:PutJobTagging", job, tags)
    passed = {"iam:PassedToService": "batchoperations.s3.amazonaws.com"}
    yield Need("iam:PassRole", request["RoleArn"], passed)
