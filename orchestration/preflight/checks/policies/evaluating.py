"""The policies of buckets and keys: what they let a role do, and what they deny it.

IAM's simulation takes no policy of a resource for a role. The statements that are about a role are
given to it as a policy of nobody's own, so that AWS itself evaluates them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestration.preflight.examination import Examination

SOURCE: Final = "https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulateCustomPolicy.html"
_EVERYTHING: Final = {"Effect": "Allow", "Action": "*", "Resource": "*"}
_NOBODY: Final = ("Principal", "NotPrincipal", "Sid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The word of policies on one action on one resource."""

    action: str
    resource: str
    decision: str
    """``allowed``, ``explicitDeny`` or ``implicitDeny``."""
    unknown: tuple[str, ...]
    """Condition keys that only the call itself will have."""


def denials(
    examination: Examination,
    policy: str,
    role: str,
    actions: Collection[str],
    resources: Collection[str],
) -> Iterator[Verdict]:
    """Yield what a resource's policy denies a role, whatever allows it elsewhere."""
    denying = [s for s in _about(policy, role, examination.account.id) if s["Effect"] == "Deny"]
    if denying:
        verdicts = _evaluated(examination, [_EVERYTHING, *denying], role, actions, resources)
        yield from (each for each in verdicts if each.decision == "explicitDeny")


def refusals(
    examination: Examination,
    policy: str,
    role: str,
    actions: Collection[str],
    resource: str,
    context: Sequence[Mapping[str, Any]] = (),
) -> Iterator[Verdict]:
    """Yield what a resource's policy neither allows a role nor leaves to its account."""
    own = _about(policy, role, examination.account.id)
    if own:
        verdicts = _evaluated(examination, own, role, actions, [resource], context)
        yield from (each for each in verdicts if each.decision != "allowed")
        return
    for action in sorted(actions):
        yield Verdict(action=action, resource=resource, decision="implicitDeny", unknown=())


def _evaluated(
    examination: Examination,
    statements: Sequence[Mapping[str, Any]],
    role: str,
    actions: Collection[str],
    resources: Collection[str],
    context: Sequence[Mapping[str, Any]] = (),
) -> Iterator[Verdict]:
    policy = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
    answers = examination.reader.every(
        "iam",
        "SimulateCustomPolicy",
        "EvaluationResults",
        token=("Marker", "Marker"),
        PolicyInputList=[policy],
        ActionNames=sorted(actions),
        ResourceArns=sorted(resources),
        ContextEntries=[*_context(examination, role), *context],
    )
    for each in answers:
        yield Verdict(
            action=each["EvalActionName"],
            resource=each["EvalResourceName"],
            decision=each["EvalDecision"],
            unknown=tuple(sorted(each.get("MissingContextValues", ()))),
        )


def _context(examination: Examination, role: str) -> Iterator[Mapping[str, Any]]:
    """Yield what is known of a call that a job makes under its role."""
    known = {
        "aws:PrincipalArn": ("string", role),
        "aws:PrincipalAccount": ("string", examination.account.id),
        "aws:RequestedRegion": ("string", examination.account.region),
        "aws:SecureTransport": ("boolean", "true"),
        "aws:PrincipalIsAWSService": ("boolean", "false"),
        "kms:CallerAccount": ("string", examination.account.id),
        "kms:GrantIsForAWSResource": ("boolean", "true"),
    }
    for name, (kind, value) in known.items():
        yield {"ContextKeyName": name, "ContextKeyValues": [value], "ContextKeyType": kind}


def _about(policy: str, role: str, account: str) -> list[dict[str, Any]]:
    """Return the statements about a role or its account, without their principals."""
    written = json.loads(policy)["Statement"]
    statements = written if isinstance(written, list) else [written]
    return [
        {name: value for name, value in each.items() if name not in _NOBODY}
        for each in statements
        if _is_about(each, role, account)
    ]


def _is_about(statement: Mapping[str, Any], role: str, account: str) -> bool:
    """Return whether a statement names a role, its account, or everybody."""
    if "NotPrincipal" in statement:
        return not _names(statement["NotPrincipal"], role, account)
    return _names(statement.get("Principal", ()), role, account)


def _names(principal: Any, role: str, account: str) -> bool:
    if isinstance(principal, str):
        return principal == "*"
    named = principal.get("AWS", ()) if isinstance(principal, Mapping) else ()
    every = [named] if isinstance(named, str) else list(named)
    partition = role.split(":")[1]
    return bool({"*", role, account, f"arn:{partition}:iam::{account}:root"} & set(every))
