"""Needs of a call: the actions that IAM asks for, on which resources, and what it knows of it.

They come from AWS's service authorization reference
(https://docs.aws.amazon.com/service-authorization/latest/reference/), written down apart from what
derives policies: each is a check of the other. Of a service that is not here, the action alone is
known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from orchestration.local.iam.moving import Unknown, copies, file_systems, transfers
from orchestration.local.iam.scaling import scales
from orchestration.local.policies.evaluation import Need

_ROLE = "arn:aws:iam::{account}:role/{RoleName}"
_SCHEDULE = "arn:aws:scheduler:{place}:schedule/{GroupName}/{Name}"
_RULE = "arn:aws:events:{place}:rule/"
_LOG_GROUP = "arn:aws:logs:{place}:log-group:{logGroupName}:log-stream:"
_RESOURCES: Final[Mapping[str, Mapping[str, str]]] = {
    "iam": {
        **dict.fromkeys(
            ("CreateRole", "DeleteRole", "DeleteRolePolicy", "GetRole", "GetRolePolicy"), _ROLE
        ),
        "SimulatePrincipalPolicy": "{PolicySourceArn}",
        **dict.fromkeys(("PutRolePolicy", "TagRole", "UpdateAssumeRolePolicy"), _ROLE),
    },
    "states": {
        "CreateStateMachine": "arn:aws:states:{place}:stateMachine:{name}",
        **dict.fromkeys(
            (
                "DeleteStateMachine",
                "DescribeStateMachine",
                "ListExecutions",
                "ListStateMachineAliases",
                "ListStateMachineVersions",
                "PublishStateMachineVersion",
                "StartExecution",
                "UpdateStateMachine",
            ),
            "{stateMachineArn}",
        ),
        **dict.fromkeys(
            ("DeleteStateMachineAlias", "DescribeStateMachineAlias", "UpdateStateMachineAlias"),
            "{stateMachineAliasArn}",
        ),
        "CreateStateMachineAlias": "{routedVersionArn}",
        "DeleteStateMachineVersion": "{stateMachineVersionArn}",
        **dict.fromkeys(("DescribeExecution", "StopExecution"), "{executionArn}"),
        **dict.fromkeys(("ListTagsForResource", "TagResource"), "{resourceArn}"),
    },
    "scheduler": dict.fromkeys(
        ("CreateSchedule", "DeleteSchedule", "GetSchedule", "UpdateSchedule"), _SCHEDULE
    ),
    "events": {
        **dict.fromkeys(("DeleteRule", "DescribeRule", "PutRule"), _RULE + "{Name}"),
        **dict.fromkeys(("ListTargetsByRule", "PutTargets", "RemoveTargets"), _RULE + "{Rule}"),
    },
    "sns": dict.fromkeys(("GetTopicAttributes", "Publish"), "{TopicArn}"),
    "logs": {
        "DescribeLogGroups": "arn:aws:logs:{place}:log-group::log-stream:",
        "DescribeLogStreams": _LOG_GROUP,
        **dict.fromkeys(
            (
                "CreateLogGroup",
                "DeleteLogGroup",
                "DeleteRetentionPolicy",
                "PutRetentionPolicy",
            ),
            _LOG_GROUP,
        ),
        **dict.fromkeys(("ListTagsForResource", "TagResource"), "{resourceArn}"),
        "GetLogEvents": _LOG_GROUP + "{logStreamName}",
    },
}
"""The resource of an operation, with fields of its request in braces."""
_PREFIXES: Final = {
    "efs": "elasticfilesystem",
    "s3control": "s3",
    "sagemaker-runtime": "sagemaker",
    "service-quotas": "servicequotas",
    "stepfunctions": "states",
}
_TAKEN: Final = {
    ("states", "CreateStateMachine"): "roleArn",
    ("states", "UpdateStateMachine"): "roleArn",
    ("scheduler", "CreateSchedule"): "RoleArn",
    ("scheduler", "UpdateSchedule"): "RoleArn",
    ("events", "PutTargets"): "RoleArn",
}
"""The field, at any depth, with the roles that an operation hands to its service."""
_NAMES: Final = {
    "TrainingJob": ("training-job", "TrainingJobName"),
    "ProcessingJob": ("processing-job", "ProcessingJobName"),
    "TransformJob": ("transform-job", "TransformJobName"),
    "HyperParameterTuningJob": ("hyper-parameter-tuning-job", "HyperParameterTuningJobName"),
    "Model": ("model", "ModelName"),
    "EndpointConfig": ("endpoint-config", "EndpointConfigName"),
    "Endpoint": ("endpoint", "EndpointName"),
    "InferenceComponent": ("inference-component", "InferenceComponentName"),
}
_OF_BUCKETS: Final = {
    "GetBucketNotificationConfiguration": "GetBucketNotification",
    **{name: name for name in ("GetBucketLocation", "GetBucketPolicy")},
    "GetBucketEncryption": "GetEncryptionConfiguration",
    "HeadBucket": "ListBucket",
}
_OF_OBJECTS: Final = {
    "GetObject": ("GetObject",),
    "GetObjectAttributes": ("GetObject", "GetObjectAttributes"),
    "HeadObject": ("GetObject",),
    "PutObject": ("PutObject",),
    "DeleteObject": ("DeleteObject",),
}


def needs(
    service: str, operation: str, request: Mapping[str, Any], account: str, region: str
) -> list[Need]:
    """List what a call needs; a ``LookupError`` for an operation that is not written down here.

    ``service`` is boto3's name.
    """
    place = f"{region}:{account}"
    match service:
        case "s3":
            return list(_s3(operation, request))
        case "sagemaker" | "sagemaker-runtime":
            return list(_sagemaker(operation, request, place))
        case "fsx":
            return list(file_systems(operation, request, place, account))
        case "datasync":
            return list(transfers(operation, request, place, account))
        case "s3control":
            return list(copies(operation, request, place))
        case "application-autoscaling":
            return list(scales(operation, request, place, account))
        case "sts":
            assumes = operation == "AssumeRole"
            return [Need("sts:AssumeRole", request["RoleArn"])] if assumes else []
    return list(_plain(_PREFIXES.get(service, service), operation, request, account, place))


def action(service: str, operation: str) -> str:
    """Return the action of an operation, by boto3's name of the service."""
    return f"{_PREFIXES.get(service, service)}:{operation}"


def _plain(
    prefix: str, operation: str, request: Mapping[str, Any], account: str, place: str
) -> Iterator[Need]:
    named = f"{prefix}:{operation}"
    if prefix not in _RESOURCES:
        yield Need(named, "")
        return
    if operation not in _RESOURCES[prefix]:
        raise Unknown(prefix, operation)
    fields = {"GroupName": "default", **request, "account": account, "place": place}
    if operation == "CreateStateMachineAlias":
        fields["routedVersionArn"] = request["routingConfiguration"][0]["stateMachineVersionArn"]
    resource = _RESOURCES[prefix][operation].format_map(fields)
    if prefix == "states":
        yield from _qualified(named, resource, published=bool(request.get("publish")))
    else:
        yield Need(named, resource)
    field = _TAKEN.get((prefix, operation))
    for role in _values(request, field) if field else ():
        yield _passed(role, prefix)


def _qualified(named: str, arn: str, *, published: bool) -> Iterator[Need]:
    """Yield the needs of a call by a version or an alias, which IAM asks of the state machine.

    https://docs.aws.amazon.com/step-functions/latest/dg/auth-version-alias.html
    """
    parts = arn.split(":")
    resource, qualifier = (arn, "")
    if parts[5] == "stateMachine":
        resource, qualifier = ":".join(parts[:7]), ":".join(parts[7:])
    context = {"states:StateMachineQualifier": qualifier} if qualifier else {}
    yield Need(named, resource, context)
    if published:
        yield Need("states:PublishStateMachineVersion", resource)


def _passed(role: str, service: str) -> Need:
    return Need("iam:PassRole", role, {"iam:PassedToService": f"{service}.amazonaws.com"})


def _values(tree: Any, field: str) -> Iterator[str]:
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            if name == field and isinstance(value, str):
                yield value
            else:
                yield from _values(value, field)
    elif isinstance(tree, list):
        for value in tree:
            yield from _values(value, field)


def _s3(operation: str, request: Mapping[str, Any]) -> Iterator[Need]:
    if operation == "ListBuckets":
        yield Need("s3:ListAllMyBuckets", "*")
        return
    bucket = f"arn:aws:s3:::{request['Bucket']}"
    if operation == "ListObjectsV2":
        yield Need("s3:ListBucket", bucket, {"s3:prefix": request.get("Prefix", "")})
    elif operation in _OF_BUCKETS:
        yield Need(f"s3:{_OF_BUCKETS[operation]}", bucket)
    elif operation in _OF_OBJECTS:
        for name in _OF_OBJECTS[operation]:
            yield Need(f"s3:{name}", f"{bucket}/{request['Key']}")
    elif operation == "CopyObject":
        yield from _copied(request["CopySource"], f"{bucket}/{request['Key']}")
    else:
        raise Unknown("s3", operation)


def _copied(source: Any, target: str) -> Iterator[Need]:
    if not isinstance(source, str):
        source = f"{source['Bucket']}/{source['Key']}"
    for name in ("s3:GetObject", "s3:GetObjectTagging"):
        yield Need(name, f"arn:aws:s3:::{unquote(source).removeprefix('/')}")
    for name in ("s3:PutObject", "s3:PutObjectTagging"):
        yield Need(name, target)


def _sagemaker(operation: str, request: Mapping[str, Any], place: str) -> Iterator[Need]:
    if re.fullmatch(
        r"List(\w+Jobs|EndpointConfigs|Endpoints|Models|InferenceComponents)", operation
    ):
        yield Need(f"sagemaker:{operation}", "*")
        return
    if operation in ("AddTags", "ListTags"):
        yield Need(f"sagemaker:{operation}", request["ResourceArn"])
        return
    found = re.fullmatch(r"(Create|Describe|Stop|Update|Delete|Invoke)(\w+)", operation)
    if found is None or found[2] not in _NAMES:
        raise Unknown("sagemaker", operation)
    verb, (kind, name) = found[1], _NAMES[found[2]]
    # SageMaker's ARNs are in lower case, whatever the request has.
    arn = f"arn:aws:sagemaker:{place}:{kind}/{request[name].lower()}"
    yield Need(f"sagemaker:{operation}", arn)
    component = request.get("InferenceComponentName")
    if kind != "inference-component" and component is not None:
        other = f"arn:aws:sagemaker:{place}:inference-component/{component.lower()}"
        yield Need(f"sagemaker:{operation}", other)
    if kind == "endpoint" and verb in ("Create", "Update"):
        config = request["EndpointConfigName"].lower()
        yield Need(f"sagemaker:{operation}", f"arn:aws:sagemaker:{place}:endpoint-config/{config}")
    if kind == "inference-component" and verb == "Create":
        endpoint = f"arn:aws:sagemaker:{place}:endpoint/{request['EndpointName'].lower()}"
        yield Need(f"sagemaker:{operation}", endpoint)
    if verb == "Create" and request.get("Tags"):
        yield Need("sagemaker:AddTags", arn)
    yield from _handed(request)


def _handed(request: Mapping[str, Any]) -> Iterator[Need]:
    """Yield what handing roles and keys to SageMaker needs."""
    for field in ("RoleArn", "ExecutionRoleArn"):
        for role in _values(request, field):
            yield _passed(role, "sagemaker")
    for field in ("KmsKeyId", "VolumeKmsKeyId"):
        for key in _values(request, field):
            if key.startswith("arn:") and ":alias/" not in key:
                yield Need("kms:CreateGrant", key)
                yield Need("kms:DescribeKey", key)
