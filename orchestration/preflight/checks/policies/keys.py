"""Keys: their policies and grants let roles use them, those of the buckets' own encryption too."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestration.catalog.partitions import via_service
from orchestration.deploy.account import Account
from orchestration.deploy.identities import jobs
from orchestration.deploy.permissions import Statement
from orchestration.deploy.permissions.requests import keys
from orchestration.preflight.checks.buckets import named
from orchestration.preflight.checks.keys import key_findings
from orchestration.preflight.checks.permissions import context
from orchestration.preflight.checks.policies.evaluating import SOURCE, refusals
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, Rule
from orchestration.preflight.handed import handed
from orchestration.preflight.places import beside, place
from orchestration.preflight.reader import looked
from orchestration.preflight.requests import Request
from orchestration.preflight.verdicts import verdicts

_RULE: Final = Rule(
    check="keys",
    why="a key is used as its own policy and its grants allow; policies of roles count where that "
    "leaves the decision to the account",
    sources=(
        "https://docs.aws.amazon.com/kms/latest/developerguide/key-policies.html",
        "https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html",
        SOURCE,
    ),
)
_READ: Final = "s3:GetObject"
_WRITTEN: Final = "s3:PutObject"
_USES: Final[Mapping[str, tuple[str, ...]]] = {
    _READ: ("kms:Decrypt",),
    _WRITTEN: ("kms:Decrypt", "kms:GenerateDataKey"),
}
"""The actions on the key of a bucket by those on its objects; parts of an upload are read, too."""
_UNENCRYPTED: Final = (
    *("ServerSideEncryptionConfigurationNotFoundError", "NoSuchBucket", "MethodNotAllowed"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Use:
    """The use that a role makes of a key."""

    role: str
    key: str
    """Its ARN."""
    actions: frozenset[str]
    where: str
    steps: str
    context: tuple[Mapping[str, Any], ...] = ()


def key_policies(examination: Examination) -> Iterator[Finding]:
    """Yield the keys that the roles of jobs may not use."""
    roles = {each.arn: each.where for each in handed(examination)}
    buckets = named(examination)
    for identity in jobs.identities(examination.workflow, examination.account, examination.runs):
        if identity.name not in roles:
            continue
        for statement in identity.statements:
            yield from _of_statement(examination, identity.name, statement, roles)
            for bucket in sorted(_buckets(statement) & set(buckets)):
                request, path = buckets[bucket]
                where = examination.where(request, *path)
                look = _of_bucket(examination, identity.name, statement, bucket, (request, where))
                yield from looked("keys", where, f"the key of bucket {bucket}", look)


def _of_statement(
    examination: Examination, role: str, statement: Statement, roles: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield what the policies of keys that requests name say of a role."""
    for arn in sorted(statement.resources):
        # A key that is named by an alias stands in a condition.
        if ":kms:" in arn and ":key/" in arn and "*" not in arn:
            use = _Use(
                role=role,
                key=arn,
                actions=statement.actions,
                where=_written(examination, statement, arn) or roles[role],
                steps=", ".join(sorted(statement.needed_by)),
                context=tuple(context(statement)),
            )
            yield from looked("keys", use.where, f"the policy of key {arn}", _use(examination, use))


def _written(examination: Examination, statement: Statement, key: str) -> str | None:
    """Return the place in the user's file of a key that a step needs."""
    for request in examination.requests:
        if request.step in statement.needed_by:
            for value, tree in beside(keys(request.values), keys(request.operation.request)):
                if isinstance(value, str) and key.endswith(value.rpartition(":")[2]):
                    return place(examination.pipeline, request.step, tree, request.turn)
    return None


def _buckets(statement: Statement) -> set[str]:
    if not statement.actions & set(_USES):
        return set()
    return {arn.partition(":::")[2].partition("/")[0] for arn in statement.resources}


def _of_bucket(
    examination: Examination,
    role: str,
    statement: Statement,
    bucket: str,
    named_by: tuple[Request, str],
) -> Iterator[Finding]:
    """Yield what is wrong with the key that a bucket encrypts with by default."""
    request, where = named_by
    key = _default(examination, bucket)
    if key is None:
        return
    found = list(key_findings(examination, key, request, where))
    yield from found
    answer = None if found else examination.reader.ask("kms", "DescribeKey", KeyId=key)
    if answer is None or answer["KeyMetadata"].get("KeyManager") == "AWS":
        return
    actions = frozenset(use for each in statement.actions for use in _USES.get(each, ()))
    use = _Use(
        role=role,
        key=answer["KeyMetadata"]["Arn"],
        actions=actions,
        where=where,
        steps=", ".join(sorted(statement.needed_by)),
        context=(
            {
                "ContextKeyName": "kms:ViaService",
                "ContextKeyValues": [_s3(examination.account)],
                "ContextKeyType": "string",
            },
        ),
    )
    of_policy = list(_use(examination, use))
    yield from of_policy or _not_allowed(examination, use, bucket)


def _s3(account: Account) -> str:
    """Return the name by which KMS knows S3 in a region."""
    return max(via_service("s3", account.region))


def _default(examination: Examination, bucket: str) -> str | None:
    """Return the key of the user's own that a bucket encrypts with, if it has one."""
    answer = examination.reader.ask("s3", "GetBucketEncryption", absent=_UNENCRYPTED, Bucket=bucket)
    rules = [] if answer is None else answer["ServerSideEncryptionConfiguration"]["Rules"]
    for rule in rules:
        default = rule.get("ApplyServerSideEncryptionByDefault", {})
        if str(default.get("SSEAlgorithm", "")).startswith("aws:kms"):
            key: str | None = default.get("KMSMasterKeyID")
            return key
    return None


def _use(examination: Examination, use: _Use) -> Iterator[Finding]:
    """Yield the actions that neither the policy of a key nor a grant lets a role do."""
    if use.key.split(":")[4] != examination.account.id:
        return  # Its policy is for that account to read.
    answer = examination.reader.ask(
        "kms", "GetKeyPolicy", absent=("NotFoundException",), KeyId=use.key, PolicyName="default"
    )
    if answer is None:
        return
    refused = list(
        refusals(examination, answer["Policy"], use.role, use.actions, use.key, use.context)
    )
    granted = _granted(examination, use) if refused else frozenset[str]()
    for each in refused:
        if each.decision != "explicitDeny" and each.action.removeprefix("kms:") in granted:
            continue
        doubt = f", unless the call has {', '.join(each.unknown)}" if each.unknown else ""
        verb = "denies" if each.decision == "explicitDeny" else "does not allow"
        yield _RULE.broken(
            f"{use.steps} needs it",
            use.where,
            f"the policy of key {use.key} {verb} {use.role} {each.action}{doubt}",
            "allow it in the policy of the key, or let that trust the policies of the account",
            "may fail" if each.unknown else "fails",
        )


def _granted(examination: Examination, use: _Use) -> Collection[str]:
    grants = examination.reader.every(
        "kms", "ListGrants", "Grants", token=("NextMarker", "Marker"), KeyId=use.key
    )
    own = (each for each in grants if each["GranteePrincipal"] == use.role)
    return frozenset(operation for each in own for operation in each["Operations"])


def _not_allowed(examination: Examination, use: _Use, bucket: str) -> Iterator[Finding]:
    """Yield what no policy of the role allows with a key that no request names."""
    answers = examination.reader.every(
        "iam",
        "SimulatePrincipalPolicy",
        "EvaluationResults",
        token=("Marker", "Marker"),
        absent=("NoSuchEntity",),
        PolicySourceArn=use.role,
        ActionNames=sorted(use.actions),
        ResourceArns=[use.key],
        ContextEntries=list(use.context),
    )
    refused = sorted(each.action for each in verdicts(answers) if each.decision != "allowed")
    if refused:
        yield _RULE.broken(
            f"{use.steps} needs it",
            use.where,
            f"role {use.role} may not {', '.join(refused)} with {use.key}, which bucket {bucket} "
            "encrypts with",
            "allow it in a policy of the role, or in that of the key",
            "may fail",
        )
