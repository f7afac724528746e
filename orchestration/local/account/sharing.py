"""Buckets of other accounts: whose they are, and what their policies allow.

Whoever calls the embedded AWS is its account; of a role that a service assumes, the ARN is known.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/how-s3-evaluates-access-control.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from orchestration.local.account.protocol import ACCOUNT_ID


def owner(bucket: str) -> str | None:
    """Return the account that a bucket belongs to, or None if the bucket does not exist."""
    entry = _backends().bucket_accounts.get(bucket)
    return None if entry is None else str(entry[1])


def allows(bucket: str, action: str, key: str = "", principal: str = ACCOUNT_ID) -> bool:
    """Return whether a principal may do something with a bucket, as far as its owner says.

    `principal` is a role's ARN, or an account's id for whoever of it may ask. The owner's own
    principals need no policy. A statement with a condition allows nothing here, and denies.
    """
    account = principal.split(":")[4] if ":" in principal else principal
    if owner(bucket) in (None, account):
        return True
    resource = f"arn:aws:s3:::{bucket}" + (f"/{key}" if key else "")
    matching = [
        statement
        for statement in _statements(bucket)
        if any(_is_meant(name, principal, account) for name in _principals(statement))
        and any(_matches(each.lower(), action.lower()) for each in _list(statement, "Action"))
        and any(_matches(each, resource) for each in _list(statement, "Resource"))
    ]
    denied = any(statement.get("Effect") == "Deny" for statement in matching)
    return not denied and any("Condition" not in statement for statement in matching)


def _statements(bucket: str) -> list[Any]:
    partition, account = _backends().bucket_accounts[bucket]
    policy = _backends()[account][partition].buckets[bucket].policy
    return _list(json.loads(policy), "Statement") if policy else []


def _principals(statement: Any) -> Iterator[str]:
    principal = statement.get("Principal", {})
    yield from [principal] if isinstance(principal, str) else _list(principal, "AWS")


def _is_meant(name: str, principal: str, account: str) -> bool:
    if name in ("*", account, principal, f"arn:aws:iam::{account}:root"):
        return True
    # Which role or user of an account asks, nothing tells.
    return principal == account and name.startswith(f"arn:aws:iam::{account}:")


def _matches(pattern: str, text: str) -> bool:
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, text, re.DOTALL) is not None


def _list(holder: Any, name: str) -> list[Any]:
    value = holder.get(name, [])
    return list(value) if isinstance(value, list) else [value]


def _backends() -> Any:
    from moto.s3.models import s3_backends

    return s3_backends
