"""Whether an IAM policy lets a call through: a judge that does not know how policies are made.

What a call needs comes from AWS's service authorization reference
(https://docs.aws.amazon.com/service-authorization/latest/reference/), written down here a second
time on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote


@dataclass(frozen=True)
class Need:
    """One action on one resource, with what IAM knows of the call."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


def allows(
    policy: Mapping[str, Any],
    service: str,
    operation: str,
    request: Mapping[str, Any],
    account: str,
    region: str,
    *,
    resource_tags: Mapping[str, str] | None = None,
) -> bool:
    """Whether the policy allows everything that a call needs.

    ``service`` is boto3's name. ``resource_tags`` are those of the resource that the call is about.
    """
    return not denied(
        policy, service, operation, request, account, region, resource_tags=resource_tags
    )


def denied(
    policy: Mapping[str, Any],
    service: str,
    operation: str,
    request: Mapping[str, Any],
    account: str,
    region: str,
    *,
    resource_tags: Mapping[str, str] | None = None,
) -> list[Need]:
    """What a call needs and the policy does not allow."""
    tags = {f"aws:ResourceTag/{key}": value for key, value in (resource_tags or {}).items()}
    return [
        need
        for need in needs(service, operation, request, account, region)
        if not _allowed(policy, Need(need.action, need.resource, {**tags, **need.context}))
    ]


def needs(
    service: str, operation: str, request: Mapping[str, Any], account: str, region: str
) -> list[Need]:
    """What a call needs; a ``LookupError`` where this judge does not know."""
    place = f"{region}:{account}"
    match service:
        case "s3":
            return list(_s3(operation, request))
        case "sagemaker" | "sagemaker-runtime":
            return list(_sagemaker(operation, request, place))
        case "fsx":
            return list(_fsx(operation, request, place, account))
        case "datasync":
            return list(_datasync(operation, request, place, account))
        case "s3control":
            return list(_batch(operation, request, place))
        case "sts":
            return []
    raise LookupError(f"what does {service}:{operation} need?")


def _s3(operation: str, request: Mapping[str, Any]) -> Iterator[Need]:
    bucket = f"arn:aws:s3:::{request['Bucket']}"
    match operation:
        case "ListObjectsV2":
            yield Need("s3:ListBucket", bucket, {"s3:prefix": request.get("Prefix", "")})
        case "HeadBucket":
            yield Need("s3:ListBucket", bucket)
        case "PutObject" | "GetObject":
            yield Need(f"s3:{operation}", f"{bucket}/{request['Key']}")
        case "GetObjectAttributes":
            for action in ("s3:GetObject", "s3:GetObjectAttributes"):
                yield Need(action, f"{bucket}/{request['Key']}")
        case "CopyObject":
            source = request["CopySource"]
            if not isinstance(source, str):
                source = f"{source['Bucket']}/{source['Key']}"
            for action in ("s3:GetObject", "s3:GetObjectTagging"):
                yield Need(action, f"arn:aws:s3:::{unquote(source).removeprefix('/')}")
            for action in ("s3:PutObject", "s3:PutObjectTagging"):
                yield Need(action, f"{bucket}/{request['Key']}")
        case _:
            raise LookupError(f"what does s3:{operation} need?")


def _batch(operation: str, request: Mapping[str, Any], place: str) -> Iterator[Need]:
    job = f"arn:aws:s3:{place}:job/{request.get('JobId', 'any')}"
    if operation != "CreateJob":
        yield Need(f"s3:{operation}", job)
        return
    tags = {f"aws:RequestTag/{tag['Key']}": tag["Value"] for tag in request["Tags"]}
    (kind,) = request["Operation"]
    yield Need("s3:CreateJob", "*", {**tags, "s3:RequestJobOperation": kind})
    yield Need("s3:PutJobTagging", job, tags)
    passed = {"iam:PassedToService": "batchoperations.s3.amazonaws.com"}
    yield Need("iam:PassRole", request["RoleArn"], passed)


_NAMES = {
    "TrainingJob": ("training-job", "TrainingJobName"),
    "ProcessingJob": ("processing-job", "ProcessingJobName"),
    "Model": ("model", "ModelName"),
    "EndpointConfig": ("endpoint-config", "EndpointConfigName"),
    "Endpoint": ("endpoint", "EndpointName"),
}


def _sagemaker(operation: str, request: Mapping[str, Any], place: str) -> Iterator[Need]:
    found = re.fullmatch(r"(Create|Describe|Stop|Update|Delete|Invoke)(\w+)", operation)
    if found is None or found[2] not in _NAMES:
        raise LookupError(f"what does sagemaker:{operation} need?")
    verb, (kind, name) = found[1], _NAMES[found[2]]
    # SageMaker's ARNs are in lower case, whatever the request has.
    arn = f"arn:aws:sagemaker:{place}:{kind}/{request[name].lower()}"
    yield Need(f"sagemaker:{operation}", arn)
    if kind == "endpoint" and verb in ("Create", "Update"):
        config = request["EndpointConfigName"].lower()
        yield Need(f"sagemaker:{operation}", f"arn:aws:sagemaker:{place}:endpoint-config/{config}")
    if verb == "Create" and request.get("Tags"):
        yield Need("sagemaker:AddTags", arn)
    for role in ("RoleArn", "ExecutionRoleArn"):
        if role in request:
            passed = {"iam:PassedToService": "sagemaker.amazonaws.com"}
            yield Need("iam:PassRole", request[role], passed)


def _fsx(operation: str, request: Mapping[str, Any], place: str, account: str) -> Iterator[Need]:
    tags = {f"aws:RequestTag/{tag['Key']}": tag["Value"] for tag in request.get("Tags", ())}
    one = request.get("FileSystemId", "fs-0123456789abcdef0")
    system = f"arn:aws:fsx:{place}:file-system/{one}"
    link = f"arn:aws:fsx:{place}:association/{one}/dra-0123456789abcdef0"
    task = f"arn:aws:fsx:{place}:task/task-0123456789abcdef0"
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
            raise LookupError(f"what does fsx:{operation} need?")


def _datasync(
    operation: str, request: Mapping[str, Any], place: str, account: str
) -> Iterator[Need]:
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
        case _:
            raise LookupError(f"what does datasync:{operation} need?")


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


def _allowed(policy: Mapping[str, Any], need: Need) -> bool:
    return any(
        statement["Effect"] == "Allow"
        and any(matches(action, need.action) for action in _several(statement["Action"]))
        and any(matches(resource, need.resource) for resource in _several(statement["Resource"]))
        and _holds(statement.get("Condition", {}), need.context)
        for statement in policy["Statement"]
    )


def _holds(condition: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    for operator, pairs in condition.items():
        for key, values in pairs.items():
            if key not in context:
                return False
            match operator:
                case "StringEquals" | "ForAnyValue:StringEquals":
                    met = context[key] in _several(values)
                case "StringLike":
                    met = any(matches(value, context[key]) for value in _several(values))
                case _:
                    raise LookupError(f"what does the condition {operator} mean?")
            if not met:
                return False
    return True


def matches(pattern: str, text: str) -> bool:
    """IAM's wildcards; ``${*}`` is an asterisk."""
    parts = re.split(r"(\$\{[*?$]\}|\*|\?)", pattern)
    wild = {"*": ".*", "?": "."}
    regex = "".join(
        wild.get(p) or re.escape(p[2] if re.fullmatch(r"\$\{.\}", p) else p) for p in parts
    )
    return re.fullmatch(regex, text, re.DOTALL) is not None


def _several(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
