"""The role by which S3 Batch Operations copies for a pipeline.

Like that of DataSync, it is made here if a stage names it as this deployment would.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.deploy.account import Account
from orchestration.deploy.permissions import Runs, Statement
from orchestration.deploy.permissions.copying import copying
from orchestration.deploy.permissions.operations import DECRYPTED, KEYS
from orchestration.deploy.permissions.patterns import ANY, Known, iam, pattern
from orchestration.deploy.permissions.policies import for_key
from orchestration.deploy.permissions.requests import keys
from orchestration.deploy.resources import Role
from orchestration.deploy.starting import Maker
from orchestration.expressions import Function, Tree, apply
from orchestration.graph import Call, Operation, Workflow, all_steps

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/batch-ops-iam-role-policies.html
READ: Final = ("s3:GetObject", "s3:GetObjectTagging")
READ_VERSIONS: Final = ("s3:GetObjectVersion", "s3:GetObjectVersionTagging")
_TRUST: Final[Mapping[str, Any]] = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "batchoperations.s3.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}
"""The documented trust. Nothing says that the service tells its account or the job when it assumes
a role, and a condition on what it does not tell would keep it from doing so."""


def name(pipeline: str, account: Account) -> str:
    """Name the role."""
    return f"{pipeline}-{account.region}-batch"


def desired(workflow: Workflow, maker: Maker, runs: Runs) -> Role | None:
    """Compute the role; None if no copy names it."""
    called, account = name(workflow.name, maker.account), maker.account
    policy = copying(_statements, workflow, called, account, runs)
    if policy is None:
        return None
    arn = account.role_arn(called)
    return Role(name=called, arn=arn, trust=_TRUST, policy=policy, tags=maker.tags)


def copies(workflow: Workflow) -> Iterator[Operation]:
    """Yield the requests that create a job."""
    for step in all_steps(workflow.graph):
        if isinstance(step, Call):
            operation = step.operation
            if (operation.service, operation.name) == ("s3control", "CreateJob"):
                yield operation


def source(operation: Operation, known: Known) -> tuple[str, str]:
    """Return the bucket that a job reads, and the part of its keys, as patterns."""
    bucket = pattern(apply(Function.S3_BUCKET, operation.reads), known)
    inside = pattern(apply(Function.S3_KEY, apply(Function.DIRECTORY, operation.reads)), known)
    return bucket, inside


def reading(operation: Operation) -> tuple[str, ...]:
    """Return the actions by which a job reads its source."""
    fields = _at(operation.request, "Manifest", "Spec", "Fields")
    versions = isinstance(fields, list) and "VersionId" in fields
    return (*READ, *READ_VERSIONS) if versions else READ


def _statements(
    workflow: Workflow, arn: str, known: Known, place: Mapping[str, str]
) -> Iterator[Statement]:
    for operation in copies(workflow):
        if pattern(operation.request["RoleArn"], known) == arn:
            yield from _needed(operation, known, place)


def _needed(operation: Operation, known: Known, place: Mapping[str, str]) -> Iterator[Statement]:
    request = operation.request
    copy = ("Operation", "S3PutObjectCopy")
    bucket, inside = source(operation, known)
    whole = f"arn:{place['partition']}:s3:::{bucket}/{inside}{ANY}"
    target, prefix = (
        pattern(_at(request, *copy, field), known)
        for field in ("TargetResource", "TargetKeyPrefix")
    )
    reports, below = (
        pattern(_at(request, "Report", field), known) for field in ("Bucket", "Prefix")
    )
    manifest = pattern(_at(request, "Manifest", "Location", "ObjectArn"), known)
    yield _allowed("ReadSource", reading(operation), whole)
    yield _allowed("WriteCopy", ("s3:PutObject", "s3:PutObjectTagging"), f"{target}/{prefix}/{ANY}")
    yield _allowed("ReadManifest", ("s3:GetObject", "s3:GetObjectVersion"), manifest)
    yield _allowed("WriteReport", ("s3:PutObject",), f"{reports}/{below}/{ANY}")
    yield _allowed("ReachBuckets", ("s3:GetBucketLocation",), manifest.partition("/")[0], reports)
    if operation.decrypts is not None:
        yield for_key(DECRYPTED["s3"], pattern(operation.decrypts, known), place)
    for key in keys(request):
        yield for_key(KEYS["s3"], pattern(key, known), place)


def _allowed(sid: str, actions: tuple[str, ...], *resources: str) -> Statement:
    return Statement(sid, frozenset(actions), frozenset(map(iam, resources)))


def _at(tree: Tree, *path: str) -> Tree:
    for name in path:
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return tree
