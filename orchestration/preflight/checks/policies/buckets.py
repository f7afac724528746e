"""Policies of buckets: none denies a role what its job reads or writes there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestration.deploy.identities import jobs
from orchestration.deploy.permissions import Statement
from orchestration.preflight.checks.buckets import named
from orchestration.preflight.checks.permissions import sample
from orchestration.preflight.checks.policies.evaluating import SOURCE, denials
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, Rule
from orchestration.preflight.handed import handed
from orchestration.preflight.reader import looked

_RULE: Final = Rule(
    check="buckets",
    why="what the policy of a bucket denies, no policy of a role allows",
    sources=(
        "https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-policies.html",
        SOURCE,
    ),
)
_ABSENT: Final = ("NoSuchBucketPolicy", "NoSuchBucket", "MethodNotAllowed")


def bucket_policies(examination: Examination) -> Iterator[Finding]:
    """Yield what policies of buckets deny to the roles of jobs."""
    places = named(examination)
    roles = {each.arn for each in handed(examination)}
    for identity in jobs.identities(examination.workflow, examination.account, examination.runs):
        for statement in identity.statements if identity.name in roles else ():
            for bucket in sorted(_buckets(statement) & set(places)):
                where = examination.where(places[bucket][0], *places[bucket][1])
                look = _denied(examination, identity.name, statement, bucket, where)
                yield from looked("buckets", where, f"the policy of bucket {bucket}", look)


def _buckets(statement: Statement) -> set[str]:
    return {_bucket(arn) for arn in statement.resources if ":s3:::" in arn}


def _bucket(arn: str) -> str:
    return arn.partition(":::")[2].partition("/")[0]


def _denied(
    examination: Examination, role: str, statement: Statement, bucket: str, where: str
) -> Iterator[Finding]:
    policy = examination.reader.ask("s3", "GetBucketPolicy", absent=_ABSENT, Bucket=bucket)
    if policy is None:
        return
    resources = [sample(arn) for arn in statement.resources if _bucket(arn) == bucket]
    steps = ", ".join(sorted(statement.needed_by))
    for each in denials(examination, policy["Policy"], role, statement.actions, resources):
        doubt = f", unless the call has another {', '.join(each.unknown)}" if each.unknown else ""
        yield _RULE.broken(
            f"{steps} needs it",
            where,
            f"the policy of bucket {bucket} denies {role} {each.action} on {each.resource}{doubt}",
            "except the role from the denial, or name another bucket",
            "may fail" if each.unknown else "fails",
        )
