"""The role by which DataSync reads and writes for a pipeline.

A stage names its role by ARN, on every driver alike. The role that has the name this deployment
would give it is made here; any other is somebody's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestration.deploy.account import Account
from orchestration.deploy.permissions import Runs, Statement, document
from orchestration.deploy.permissions.patterns import ANY, Known, iam, pattern
from orchestration.deploy.resources import Role
from orchestration.deploy.starting import Maker
from orchestration.expressions import Result
from orchestration.graph import Call, Graph, Workflow, all_steps

# Both lists: https://docs.aws.amazon.com/datasync/latest/userguide/create-s3-location.html
_BUCKET: Final = ("s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads")
_READ: Final = (
    "s3:GetObject",
    "s3:GetObjectTagging",
    "s3:GetObjectVersion",
    "s3:GetObjectVersionTagging",
    "s3:ListMultipartUploadParts",
)
_WRITE: Final = (
    *_READ,
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:PutObject",
    "s3:PutObjectTagging",
)


def name(pipeline: str, account: Account) -> str:
    """Name the role."""
    return f"{pipeline}-{account.region}-datasync"


def desired(workflow: Workflow, maker: Maker, runs: Runs) -> Role | None:
    """Compute the role; None if no transfer names it."""
    called = name(workflow.name, maker.account)
    arn = maker.account.role_arn(called)
    statements = [
        statement
        for parameters in runs
        for statement in _statements(workflow.graph, arn, Known(parameters=parameters, listings={}))
    ]
    if not statements:
        return None
    sources = maker.account.arn("datasync", "*")
    return maker.role(called, document(*statements), "datasync.amazonaws.com", sources=sources)


def _statements(graph: Graph, arn: str, known: Known) -> Iterator[Statement]:
    calls = {step.name: step for step in all_steps(graph) if isinstance(step, Call)}
    for task in calls.values():
        if (task.operation.service, task.operation.name) != ("datasync", "CreateTask"):
            continue
        for end, sid, actions in (
            ("SourceLocationArn", "ReadSource", _READ),
            ("DestinationLocationArn", "WriteCopy", _WRITE),
        ):
            location = task.operation.request[end]
            if isinstance(location, Result) and location.step in calls:
                yield from _location(calls[location.step], arn, known, sid, actions)


def _location(
    call: Call, arn: str, known: Known, sid: str, actions: tuple[str, ...]
) -> Iterator[Statement]:
    request = call.operation.request
    config = request.get("S3Config")
    if not isinstance(config, dict) or pattern(config["BucketAccessRoleArn"], known) != arn:
        return
    bucket = pattern(request["S3BucketArn"], known)
    inside = pattern(request.get("Subdirectory", "/"), known)
    objects = iam(f"{bucket}/{inside.lstrip('/')}{ANY}")
    yield Statement("ReachBuckets", frozenset(_BUCKET), frozenset([iam(bucket)]))
    yield Statement(sid, frozenset(actions), frozenset([objects]))
