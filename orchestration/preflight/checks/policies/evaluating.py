"""The policies of buckets and keys: what they let a role do, and what they deny it.

IAM's simulation takes no policy of a resource for a role. The statements that are about a role are
given to it as a policy of nobody's own, so that AWS itself evaluates them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from orchestration.preflight.examination import Examination
from orchestration.preflight.verdicts import Verdict, verdicts

SOURCE: Final = "https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulateCustomPolicy.html"
_EVERYTHING: Final = {"Effect": "Allow", "Action": "*", "Resource": "*"}
_NOBODY: Final = ("Principal", "NotPrincipal", "Sid")


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
        evaluated = _evaluated(examination, [_EVERYTHING, *denying], role, actions, resources)
        yield from (each for each in evaluated if each.decision == "explicitDeny")


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
        evaluated = _evaluated(examination, own, role, actions, [resource], context)
        yield from (each for each in evaluated if each.decision != "allowed")
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
    return verdicts(answers)


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
    """Return whether a statement names a role, its account, or everybody.

    A denial excepts a role only if it names both the role and its account.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_notprincipal.html
    """
    whole = {account, f"arn:{role.split(':')[1]}:iam::{account}:root"}
    if "NotPrincipal" in statement:
        named = _named(statement["NotPrincipal"])
        return not ("*" in named or (role in named and named & whole))
    return bool({"*", role, *whole} & _named(statement.get("Principal", ())))


def _named(principal: Any) -> set[str]:
    """Return the accounts, roles and users of a principal; ``*`` is everybody."""
    if isinstance(principal, str):
        return {principal}
    named = principal.get("AWS", ()) if isinstance(principal, Mapping) else ()
    return {named} if isinstance(named, str) else set(named)
