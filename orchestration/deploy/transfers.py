"""The role by which DataSync reads and writes for a pipeline.

A stage names its role by ARN, on every driver alike. The role that has the name this deployment
would give it is made here; any other is somebody's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from orchestration.deploy.account import Account
from orchestration.deploy.permissions import Runs, Statement
from orchestration.deploy.permissions.copying import copying
from orchestration.deploy.permissions.operations import DECRYPTED, KEYS
from orchestration.deploy.permissions.patterns import ANY, Known, iam, pattern
from orchestration.deploy.permissions.policies import for_key
from orchestration.deploy.resources import Role
from orchestration.deploy.starting import Maker
from orchestration.expressions import Result
from orchestration.graph import Call, Workflow, all_steps

# Both lists: https://docs.aws.amazon.com/datasync/latest/userguide/create-s3-location.html
BUCKET: Final = ("s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads")
READ: Final = (
    "s3:GetObject",
    "s3:GetObjectTagging",
    "s3:GetObjectVersion",
    "s3:GetObjectVersionTagging",
    "s3:ListMultipartUploadParts",
)
_WRITE: Final = (
    *READ,
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:PutObject",
    "s3:PutObjectTagging",
)
_ENDS: Final = {
    "SourceLocationArn": ("ReadSource", READ, DECRYPTED["s3"]),
    "DestinationLocationArn": ("WriteCopy", _WRITE, KEYS["s3"]),
}
"""Sid, actions on objects and use of keys at both ends of a transfer.
https://docs.aws.amazon.com/datasync/latest/userguide/create-s3-location.html#create-s3-location-encryption"""


def name(pipeline: str, account: Account) -> str:
    """Name the role."""
    return f"{pipeline}-{account.region}-datasync"


def desired(workflow: Workflow, maker: Maker, runs: Runs) -> Role | None:
    """Compute the role; None if no transfer names it."""
    called, account = name(workflow.name, maker.account), maker.account
    policy = copying(_statements, workflow, called, account, runs)
    if policy is None:
        return None
    sources = account.arn("datasync", "*")
    return maker.role(called, policy, {"datasync.amazonaws.com": sources})


def _statements(
    workflow: Workflow, arn: str, known: Known, place: Mapping[str, str]
) -> Iterator[Statement]:
    calls = {step.name: step for step in all_steps(workflow.graph) if isinstance(step, Call)}
    for task in calls.values():
        if (task.operation.service, task.operation.name) != ("datasync", "CreateTask"):
            continue
        for end in _ENDS:
            location = task.operation.request[end]
            if isinstance(location, Result) and location.step in calls:
                yield from _location(calls[location.step], arn, known, place, end)


def _location(
    call: Call, arn: str, known: Known, place: Mapping[str, str], end: str
) -> Iterator[Statement]:
    request, (sid, actions, keys) = call.operation.request, _ENDS[end]
    config = request.get("S3Config")
    if not isinstance(config, dict) or pattern(config["BucketAccessRoleArn"], known) != arn:
        return
    bucket = pattern(request["S3BucketArn"], known)
    inside = pattern(request.get("Subdirectory", "/"), known)
    objects = iam(f"{bucket}/{inside.lstrip('/')}{ANY}")
    if call.operation.decrypts is not None:
        yield for_key(keys, pattern(call.operation.decrypts, known), place)
    yield Statement("ReachBuckets", frozenset(BUCKET), frozenset([iam(bucket)]))
    yield Statement(sid, frozenset(actions), frozenset([objects]))
