"""Permissions: the roles of jobs may do what the requests of their steps need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.backends import stepfunctions
from orchestration.deploy import own_role
from orchestration.deploy import permissions as derived
from orchestration.deploy.identities import jobs
from orchestration.deploy.permissions import Statement
from orchestration.deploy.permissions.statements import merged
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, Severity
from orchestration.preflight.handed import handed
from orchestration.preflight.reader import Unread, looked
from orchestration.preflight.verdicts import verdicts

_SOURCES: Final = (
    "https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html",
    "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html",
)
_TELLING: Final = {"cloudwatch", "logs"}
"""Services without which a job runs, and nobody sees its log or its metrics."""
_SAMPLE: Final = "x"
"""Stands for the part of a name that only a run knows."""


def permissions(examination: Examination) -> Iterator[Finding]:
    """Yield the actions that roles need and are not allowed."""
    places = {each.arn: each.where for each in handed(examination)}
    workflow, account = examination.workflow, examination.account
    for identity in jobs.identities(workflow, account, examination.runs):
        if identity.name in places:
            yield from _of_role(
                examination, identity.name, places[identity.name], identity.statements
            )
    own = own_role.named(examination.pipeline, examination.role)
    if own is not None:
        waited = derived.synchronous(stepfunctions.render(workflow))
        needed = derived.statements(workflow, account, examination.runs, synchronous=waited)
        yield from _of_role(examination, own, places[own], tuple(merged(needed)))


def _of_role(
    examination: Examination, role: str, where: str, statements: tuple[Statement, ...]
) -> Iterator[Finding]:
    for statement in statements:
        what = f"whether role {role} may {', '.join(sorted(statement.actions))}"
        yield from looked("permissions", where, what, _denied(examination, role, where, statement))


def _denied(
    examination: Examination, role: str, where: str, statement: Statement
) -> Iterator[Finding]:
    answers = examination.reader.every(
        "iam",
        "SimulatePrincipalPolicy",
        "EvaluationResults",
        token=("Marker", "Marker"),
        absent=("NoSuchEntity",),
        PolicySourceArn=role,
        ActionNames=sorted(statement.actions),
        ResourceArns=sorted(map(sample, statement.resources)),
        ContextEntries=list(context(statement)),
    )
    refused = [each for each in verdicts(answers) if each.decision != "allowed"]
    if not refused:
        return
    actions = sorted({each.action for each in refused})
    resources = sorted({each.resource for each in refused})
    explicit = any(each.decision == "explicitDeny" for each in refused)
    severity, doubt = _severity(examination, statement, explicit=explicit)
    steps = ", ".join(sorted(statement.needed_by))
    yield Finding(
        check="permissions",
        severity=severity,
        where=where,
        what=f"role {role} may not {', '.join(actions)} on {', '.join(resources)}",
        why=f"a policy of it denies that{doubt}"
        if explicit
        else f"no policy of it allows that{doubt}",
        when=f"{steps} needs it (statement {statement.sid} of `orchestrate iam`)",
        mend="remove the denial"
        if explicit
        else "add the statement to a policy of the role: `orchestrate iam` prints it",
        sources=_SOURCES,
    )


def _severity(
    examination: Examination, statement: Statement, *, explicit: bool
) -> tuple[Severity, str]:
    services = {action.partition(":")[0] for action in statement.actions}
    if services <= _TELLING:
        return "may fail", "; the job runs, and its log or its metrics are missing"
    if not explicit and _may_be_allowed_by_others(examination, statement, services):
        return "may fail", "; a policy of the resource itself may, which no simulation reads"
    return "fails", ""


def _may_be_allowed_by_others(
    examination: Examination, statement: Statement, services: set[str]
) -> bool:
    """Return whether policies of resources may allow what a role's own do not."""
    if "kms" in services:
        return True
    if services != {"s3"}:
        return False
    buckets = {arn.split(":::")[1].partition("/")[0] for arn in statement.resources if ":::" in arn}
    return any(_has_policy(examination, bucket) for bucket in buckets)


def _has_policy(examination: Examination, bucket: str) -> bool:
    absent = ("NoSuchBucketPolicy", "NoSuchBucket")
    try:
        answer = examination.reader.ask("s3", "GetBucketPolicy", absent=absent, Bucket=bucket)
    except Unread:
        return True  # It may have one.
    return answer is not None


def sample(arn: str) -> str:
    """Return a resource that a pattern of IAM names."""
    if arn == "*":
        return arn
    return "*".join(part.replace("*", _SAMPLE) for part in arn.split("${*}"))


def context(statement: Statement) -> Iterator[Mapping[str, Any]]:
    """Yield the condition keys of a statement, with values that fulfil it."""
    for _, key, values in statement.condition:
        yield {
            "ContextKeyName": key,
            "ContextKeyValues": [sample(sorted(values)[0])],
            "ContextKeyType": "string",
        }
