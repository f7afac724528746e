"""Sources in buckets of other accounts, and the statements that their policies need; model groups.

Nobody but their owner can read or change those policies, so a deployment says what they need.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestration.deploy import batch_copies
from orchestration.deploy.account import Account
from orchestration.deploy.permissions import Runs, registries
from orchestration.deploy.permissions.patterns import ANY, Known, iam, pattern
from orchestration.deploy.resources import Desired, ForeignSource
from orchestration.deploy.transfers import BUCKET, READ
from orchestration.graph import Call, Operation, Workflow, all_steps

_LISTED: Final = ("s3:GetBucketLocation", "s3:ListBucket")
_COPIED: Final = ("s3:GetObject", "s3:GetObjectTagging")


@dataclass(frozen=True, slots=True)
class _Reader:
    """One reader of a bucket, by the part of its keys that it reads."""

    bucket: str
    prefix: str
    role: str
    """Empty: the role of the state machine."""


def sources(workflow: Workflow, account: Account, runs: Runs) -> tuple[ForeignSource, ...]:
    """Return the sources that stages expect in buckets of other accounts."""
    wanted: dict[ForeignSource, None] = {}
    calls = [step.operation for step in all_steps(workflow.graph) if isinstance(step, Call)]
    for parameters in runs:
        known = Known(parameters=parameters, listings={})
        owners = dict(_owners(calls, known))
        for reader in _readers(calls, known):
            owner = owners.get(reader.bucket, account.id)
            if owner != account.id:
                arn = f"arn:{account.partition}:s3:::{reader.bucket}"
                objects = iam(f"{arn}/{reader.prefix}{ANY}")
                source = ForeignSource(
                    account=owner, bucket=iam(arn), objects=objects, role=reader.role
                )
                wanted[source] = None
    return tuple(wanted)


def warnings(desired: Desired) -> Iterator[str]:
    """Yield what the owners of other accounts' buckets, model groups and roles have to allow."""
    machine = desired.machine.role_arn
    own = desired.machine.arn.split(":")[4]
    yield from registries.told(desired.role.policy, machine, own)
    yield from (role.told(machine) for role in desired.assumed)
    buckets: dict[tuple[str, str], list[ForeignSource]] = {}
    for source in desired.foreign:
        buckets.setdefault((source.account, source.bucket), []).append(source)
    for (owner, bucket), read in buckets.items():
        statements = list(_statements(read, machine))
        yield (
            f"bucket {bucket.rpartition(':')[2]} belongs to account {owner}, whose policies can't "
            f"be read here; the bucket's needs these statements: {json.dumps(statements)}"
        )


def _statements(read: Iterable[ForeignSource], machine: str) -> Iterator[Mapping[str, Any]]:
    for number, source in enumerate(read, 1):
        by_machine = not source.role
        for sid, actions, resource in (
            ("List", _LISTED if by_machine else BUCKET, source.bucket),
            ("Read", _COPIED if by_machine else READ, source.objects),
        ):
            yield {
                "Sid": f"{sid}{number}",
                "Effect": "Allow",
                "Principal": {"AWS": source.role or machine},
                "Action": list(actions),
                "Resource": resource,
            }


def _owners(calls: Iterable[Operation], known: Known) -> Iterator[tuple[str, str]]:
    for call in calls:
        owner = call.request.get("ExpectedBucketOwner")
        if call.service == "s3" and owner is not None:
            yield pattern(call.request["Bucket"], known), pattern(owner, known)


def _readers(calls: Iterable[Operation], known: Known) -> Iterator[_Reader]:
    for call in calls:
        request = call.request
        match call.service, call.name:
            case "s3", "ListObjectsV2":
                bucket, prefix = (pattern(request[each], known) for each in ("Bucket", "Prefix"))
                yield _Reader(bucket, prefix, "")
            case "datasync", "CreateLocationS3":
                bucket = pattern(request["S3BucketArn"], known).rpartition(":")[2]
                prefix = pattern(request["Subdirectory"], known).lstrip("/")
                config = request["S3Config"]
                role = config["BucketAccessRoleArn"] if isinstance(config, Mapping) else None
                yield _Reader(bucket, prefix, pattern(role, known))
                # Whoever makes the location must reach the bucket, too.
                yield _Reader(bucket, prefix, "")
            case "s3control", "CreateJob":
                bucket, prefix = batch_copies.source(call, known)
                yield _Reader(bucket, prefix, pattern(request["RoleArn"], known))
                # The bucket's owner is asked for first.
                yield _Reader(bucket, prefix, "")
