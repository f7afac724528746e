"""Buckets of other accounts: whose they are, and what their policies allow.

Whoever calls the embedded AWS is its account; of a role that a service assumes, the ARN is known.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/how-s3-evaluates-access-control.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from orchestration.local.account.protocol import ACCOUNT_ID
from orchestration.local.policies.deciding import decide
from orchestration.local.policies.evaluation import Need, decision


def owner(bucket: str) -> str | None:
    """Return the account that a bucket belongs to, or None if the bucket does not exist."""
    entry = _backends().bucket_accounts.get(bucket)
    return None if entry is None else str(entry[1])


def allows(
    bucket: str,
    action: str,
    key: str = "",
    principal: str = ACCOUNT_ID,
    context: Mapping[str, str] | None = None,
) -> bool:
    """Return whether a principal may do something with a bucket, as far as its policy says.

    `principal` is a role's ARN, or an account's id for whoever of it may ask. The owner's own
    principals may do what no statement denies, and where IAM is enforced, a role what its own
    policies or the bucket's allow. `context` has condition keys of the request with their values.
    """
    account = principal.split(":")[4] if ":" in principal else principal
    holder = owner(bucket)
    if holder is None:
        return True
    known = {
        "aws:PrincipalAccount": account,
        "aws:ResourceAccount": holder,
        "s3:ResourceAccount": holder,
        # The embedded AWS is reached by HTTP, what it stands for by HTTPS.
        "aws:SecureTransport": "true",
        **({"aws:PrincipalArn": principal} if ":" in principal else {}),
    }
    resource = f"arn:aws:s3:::{bucket}" + (f"/{key}" if key else "")
    meant = meant_for(principal, _policy(bucket))
    need = Need(action, resource, {**known, **(context or {})})
    decided = decision([{"Statement": meant}], need)
    own = decide(principal, need) if ":" in principal else "allowed"
    if "explicitDeny" in (decided, own):
        return False
    if holder == account:
        return "allowed" in (decided, own)
    return decided == own == "allowed"


def meant_for(principal: str, policy: Any) -> list[Any]:
    """Return the statements of a resource's policy that are about a principal."""
    account = principal.split(":")[4] if ":" in principal else principal
    return [
        statement
        for statement in _list(policy, "Statement")
        if any(_is_meant(name, principal, account) for name in _principals(statement))
    ]


def _policy(bucket: str) -> Any:
    partition, account = _backends().bucket_accounts[bucket]
    policy = _backends()[account][partition].buckets[bucket].policy
    return json.loads(policy) if policy else {}


def _principals(statement: Any) -> Iterator[str]:
    principal = statement.get("Principal", {})
    yield from [principal] if isinstance(principal, str) else _list(principal, "AWS")


def _is_meant(name: str, principal: str, account: str) -> bool:
    if name in ("*", account, principal, f"arn:aws:iam::{account}:root"):
        return True
    # Which role or user of an account asks, nothing tells.
    return principal == account and name.startswith(f"arn:aws:iam::{account}:")


def _list(holder: Any, name: str) -> list[Any]:
    value = holder.get(name, [])
    return list(value) if isinstance(value, list) else [value]


def _backends() -> Any:
    from moto.s3.models import s3_backends

    return s3_backends
