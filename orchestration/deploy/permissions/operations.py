"""Operations whose permissions differ from those in AWS's reference: one row each, with its source.

A row is narrower than :mod:`orchestration.deploy.permissions.derived` would be (tags as conditions,
fewer kinds of resources), or says what the service does besides. All other operations need none.
Fields in braces come from the request (``{TrainingJobName}``) or from the account (``{region}``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.deploy.permissions import batch, datasync
from orchestration.deploy.permissions.statements import OWN_REQUEST, OWN_RESOURCE, Grant, single

_REFERENCE = "https://docs.aws.amazon.com/service-authorization/latest/reference/list_"
_SAGEMAKER = _REFERENCE + "amazonsagemaker.html"
_S3 = _REFERENCE + "amazons3.html"
_FSX = _REFERENCE + "amazonfsx.html"
_SNS = _REFERENCE + "amazonsns.html"
_COPY = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html"
_LINKED = (
    "https://docs.aws.amazon.com/fsx/latest/LustreGuide/setting-up.html#fsx-adding-permissions-s3"
)
_SYNC = "https://docs.aws.amazon.com/step-functions/latest/dg/sagemaker-iam.html"
_PASS = "https://docs.aws.amazon.com/sagemaker/latest/dg/api-permissions-reference.html"  # noqa: S105 - a page

_TRAINING = "arn:{partition}:sagemaker:{region}:{account}:training-job/{TrainingJobName}"
_PROCESSING = "arn:{partition}:sagemaker:{region}:{account}:processing-job/{ProcessingJobName}"
_CONFIG = "arn:{partition}:sagemaker:{region}:{account}:endpoint-config/{EndpointConfigName}"
_ENDPOINT = "arn:{partition}:sagemaker:{region}:{account}:endpoint/{EndpointName}"
_COMPONENT = (
    "arn:{partition}:sagemaker:{region}:{account}:inference-component/{InferenceComponentName}"
)
_FILE_SYSTEM = "arn:{partition}:fsx:{region}:{account}:file-system/*"
_ASSOCIATION = "arn:{partition}:fsx:{region}:{account}:association/*/*"
_TASK = "arn:{partition}:fsx:{region}:{account}:task/*"
_TRANSFORM = "arn:{partition}:sagemaker:{region}:{account}:transform-job/{TransformJobName}"
_TOPIC = "arn:{partition}:sns:{region}:{account}:{Name}"
_RULE = "arn:{partition}:events:{region}:{account}:rule/StepFunctionsGetEventsForSageMaker"


def _created(sid: str, action: str, resource: str, *others: str) -> tuple[Grant, ...]:
    own = Grant(
        sid=sid,
        actions=(f"sagemaker:{action}",),
        resources=(resource, *others),
        source=_SAGEMAKER,
    )
    return own, single(sid, "sagemaker:AddTags", resource, _SAGEMAKER, where="Tags")


_FILE_SYSTEM_CREATED = (
    Grant(
        sid="CreateOwnFileSystems",
        actions=("fsx:CreateFileSystem", "fsx:TagResource"),
        resources=(_FILE_SYSTEM,),
        condition=OWN_REQUEST,
        source=_FSX,
    ),
    Grant(
        sid="FsxLooksUpSecurityGroups",
        actions=("ec2:GetSecurityGroupsForVpc",),
        resources=("arn:{partition}:ec2:{region}:{account}:vpc/*",),
        condition={"ForAnyValue:StringEquals": {"aws:CalledVia": "fsx.amazonaws.com"}},
        source="https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonFSxFullAccess.html",
    ),
    Grant(
        sid="FirstFileSystemOfAccount",
        actions=("iam:CreateServiceLinkedRole",),
        resources=("arn:{partition}:iam::{account}:role/aws-service-role/fsx.amazonaws.com/*",),
        condition={"StringEquals": {"iam:AWSServiceName": "fsx.amazonaws.com"}},
        source="https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-service-linked-roles.html",
    ),
)
_DATA_LINKED = (
    Grant(
        sid="LinkOwnFileSystems",
        actions=("fsx:CreateDataRepositoryAssociation",),
        resources=(_FILE_SYSTEM,),
        condition=OWN_RESOURCE,
        source=_FSX,
    ),
    Grant(
        sid="CreateOwnLinks",
        actions=("fsx:CreateDataRepositoryAssociation", "fsx:TagResource"),
        resources=(_ASSOCIATION,),
        condition=OWN_REQUEST,
        source=_FSX,
    ),
    # One service-linked role per linked file system, which FSx creates and deletes on our behalf.
    Grant(
        sid="FsxReachesLinkedData",
        actions=("iam:CreateServiceLinkedRole", "iam:AttachRolePolicy", "iam:PutRolePolicy"),
        resources=(
            "arn:{partition}:iam::{account}:role/aws-service-role"
            "/s3.data-source.lustre.fsx.amazonaws.com/*",
        ),
        source=_LINKED,
    ),
)
_TASK_STARTED = (
    Grant(
        sid="LinkOwnFileSystems",
        actions=("fsx:CreateDataRepositoryTask",),
        resources=(_FILE_SYSTEM,),
        condition=OWN_RESOURCE,
        source=_FSX,
    ),
    Grant(
        sid="CreateOwnTasks",
        actions=("fsx:CreateDataRepositoryTask", "fsx:TagResource"),
        resources=(_TASK,),
        condition=OWN_REQUEST,
        source=_FSX,
    ),
)
_COPIED = (
    Grant(
        sid="ReadObjects",
        actions=("s3:GetObject", "s3:GetObjectTagging"),
        resources=("arn:{partition}:s3:::{CopySource}",),
        source=_COPY,
    ),
    Grant(
        sid="WriteObjects",
        actions=("s3:PutObject", "s3:PutObjectTagging"),
        resources=("arn:{partition}:s3:::{Bucket}/{Key}",),
        source=_COPY,
    ),
)
_LISTED = Grant(
    sid="ListObjects",
    actions=("s3:ListBucket",),
    resources=("arn:{partition}:s3:::{Bucket}",),
    condition={"StringLike": {"s3:prefix": "{Prefix}"}},
    source="https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html",
)

OPERATIONS: Final[Mapping[tuple[str, str], tuple[Grant, ...]]] = {
    # Nobody needs a permission for it, and nobody can be denied it:
    # https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
    ("sts", "GetCallerIdentity"): (),
    # The reference has every kind of resource, and the request says which it is.
    ("sagemaker", "AddTags"): (
        single("TagResources", "sagemaker:AddTags", "{ResourceArn}", _SAGEMAKER),
    ),
    ("s3", "ListObjectsV2"): (_LISTED,),
    ("s3", "CopyObject"): _COPIED,
    ("s3", "GetObject"): (
        single("ReadObjects", "s3:GetObject", "arn:{partition}:s3:::{Bucket}/{Key}", _S3),
    ),
    # The reference does not have it: it needs s3:ListBucket.
    ("s3", "HeadBucket"): (
        single("ListBuckets", "s3:ListBucket", "arn:{partition}:s3:::{Bucket}", _S3),
    ),
    ("s3", "HeadObject"): (
        single("ReadObjects", "s3:GetObject", "arn:{partition}:s3:::{Bucket}/{Key}", _S3),
    ),
    ("s3", "GetObjectAttributes"): (
        Grant(
            sid="ReadObjects",
            actions=("s3:GetObject", "s3:GetObjectAttributes"),
            resources=("arn:{partition}:s3:::{Bucket}/{Key}",),
            source="https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectAttributes.html",
        ),
    ),
    ("s3", "PutObject"): (
        single("WriteObjects", "s3:PutObject", "arn:{partition}:s3:::{Bucket}/{Key}", _S3),
    ),
    ("s3", "DeleteObject"): (
        single("DeleteObjects", "s3:DeleteObject", "arn:{partition}:s3:::{Bucket}/{Key}", _S3),
    ),
    ("sagemaker", "CreateTrainingJob"): _created("TrainingJobs", "CreateTrainingJob", _TRAINING),
    # The reference lets it pass a role, which only another kind of configuration names.
    ("sagemaker", "CreateEndpointConfig"): _created(
        "EndpointConfigs", "CreateEndpointConfig", _CONFIG
    ),
    ("sagemaker", "CreateEndpoint"): _created("Endpoints", "CreateEndpoint", _ENDPOINT, _CONFIG),
    ("sagemaker-runtime", "InvokeEndpoint"): (
        single("Endpoints", "sagemaker:InvokeEndpoint", _ENDPOINT, _SAGEMAKER),
        single(
            "InferenceComponents",
            "sagemaker:InvokeEndpoint",
            _COMPONENT,
            _SAGEMAKER,
            where="InferenceComponentName",
        ),
    ),
    ("fsx", "CreateFileSystem"): _FILE_SYSTEM_CREATED,
    ("fsx", "CreateDataRepositoryAssociation"): _DATA_LINKED,
    ("fsx", "CreateDataRepositoryTask"): _TASK_STARTED,
    ("fsx", "CancelDataRepositoryTask"): (
        Grant(
            sid="CancelOwnTasks",
            actions=("fsx:CancelDataRepositoryTask",),
            resources=(_TASK,),
            condition=OWN_RESOURCE,
            source=_FSX,
        ),
    ),
    ("fsx", "TagResource"): (
        Grant(
            sid="MarkOwnFileSystems",
            actions=("fsx:TagResource",),
            resources=(_FILE_SYSTEM,),
            condition=OWN_RESOURCE,
            source=_FSX,
        ),
    ),
    ("fsx", "DeleteFileSystem"): (
        Grant(
            sid="DeleteOwnFileSystems",
            actions=("fsx:DeleteFileSystem",),
            resources=(_FILE_SYSTEM,),
            condition=OWN_RESOURCE,
            source=_FSX,
        ),
    ),
    # The reference lets it pass a role, which only the attributes of logged deliveries name:
    # https://docs.aws.amazon.com/sns/latest/dg/msg-status-sdk.html
    ("sns", "CreateTopic"): (
        single("Sns", "sns:CreateTopic", _TOPIC, _SNS),
        single("Sns", "sns:TagResource", _TOPIC, _SNS, where="Tags"),
    ),
    **datasync.OPERATIONS,
    **batch.OPERATIONS,
}
"""Permissions by boto3's service name and the operation, where the reference's own do not do."""


def _followed(sid: str, job: str, resource: str) -> tuple[Grant, ...]:
    actions = (f"sagemaker:Describe{job}", f"sagemaker:Stop{job}")
    return (
        # Step Functions tags what it starts, and reads the tags of what it follows.
        Grant(
            sid=sid,
            actions=(*actions, "sagemaker:AddTags", "sagemaker:ListTags"),
            resources=(resource,),
            source=_SYNC,
        ),
        Grant(
            sid="HearOfJobsEnd",
            actions=("events:DescribeRule", "events:PutRule", "events:PutTargets"),
            resources=(f"{_RULE}{job}sRule",),
            source=_SYNC,
        ),
    )


SYNCHRONOUS: Final[Mapping[str, tuple[Grant, ...]]] = {
    "createTrainingJob": _followed("TrainingJobs", "TrainingJob", _TRAINING),
    "createProcessingJob": _followed("ProcessingJobs", "ProcessingJob", _PROCESSING),
    "createTransformJob": _followed("TransformJobs", "TransformJob", _TRANSFORM),
}
"""Permissions that ``sagemaker:<operation>.sync`` needs beside the call."""


def _passed(sid: str, service: str, source: str) -> Grant:
    return Grant(
        sid=sid,
        actions=("iam:PassRole",),
        resources=("{role}",),
        condition={"StringEquals": {"iam:PassedToService": f"{service}.amazonaws.com"}},
        source=source,
    )


PASSED: Final[Mapping[str, Grant]] = {
    "sagemaker": _passed("PassRoleToSageMaker", "sagemaker", _PASS),
    "datasync": _passed("PassRoleToDataSync", "datasync", datasync.ACCESS),
    "s3control": _passed("PassRoleToBatchOperations", "batchoperations.s3", batch.ACCESS),
}
"""For a role in a request to a service."""

_BY_S3 = {"StringEquals": {"kms:ViaService": "s3.{key_region}.amazonaws.com"}}
_S3_KEYS = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html"
KEYS: Final[Mapping[str, Grant]] = {
    "s3": Grant(
        sid="UseKeys",
        actions=("kms:Decrypt", "kms:GenerateDataKey"),
        resources=("{key}",),
        condition=_BY_S3,
        source=_S3_KEYS,
    ),
    "sagemaker": Grant(
        sid="UseKeys",
        actions=("kms:CreateGrant", "kms:DescribeKey"),
        resources=("{key}",),
        source=_PASS,
    ),
    "fsx": Grant(
        sid="UseKeys",
        actions=(
            "kms:CreateGrant",
            "kms:Decrypt",
            "kms:DescribeKey",
            "kms:GenerateDataKeyWithoutPlaintext",
        ),
        resources=("{key}",),
        source="https://docs.aws.amazon.com/fsx/latest/LustreGuide/encryption-at-rest.html",
    ),
}
"""For a key in a request to a service (every field whose name ends in ``KmsKeyId``)."""
USED_BY_ROLES: Final = frozenset({"s3control"})
"""Services that use the keys of a request as the role that it hands on, not as their caller."""

DECRYPTED: Final[Mapping[str, Grant]] = {
    "s3": Grant(
        sid="UseKeys",
        actions=("kms:Decrypt",),
        resources=("{key}",),
        condition=_BY_S3,
        source=_S3_KEYS,
    ),
}
"""For the key that what a call reads is encrypted with, where its caller itself reads."""
