"""Callers, by their access keys: sessions of roles, and the account itself, which may do all."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from orchestration.local.account.protocol import ACCOUNT_ID
from orchestration.local.processes.environment import ACCESS_KEY


@dataclass(frozen=True)
class Credentials:
    """Temporary credentials of a role."""

    access_key: str
    secret_key: str
    token: str


@functools.cache
def session(role: str) -> Credentials:
    """Return a session of a role, as the service has it that runs under the role."""
    made = _sts().assume_role(
        region_name="us-east-1",
        role_session_name="service",
        role_arn=role,
        policy=None,
        duration=3600,
        external_id=None,
    )
    return Credentials(made.access_key_id, made.secret_access_key, made.session_token)


def role_of(access_key: str) -> str | None:
    """Return the ARN of the role whose session has an access key; None for the account."""
    from moto.sts.models import sts_backends

    for partitions in [*sts_backends.values()]:
        assumed = partitions["aws"].get_assumed_role_from_access_key(access_key)
        if assumed is not None:
            return str(assumed.role_arn)
    return None


def account_of(access_key: str) -> str | None:
    """Return the account of the role whose session has an access key."""
    role = None if access_key == ACCESS_KEY else role_of(access_key)
    return None if role is None else _account(role)


def policies(role: str) -> list[Mapping[str, Any]]:
    """Return the policies of a role, its own and those attached to it; none if it is missing."""
    found = _role(role)
    if found is None:
        return []
    attached = [
        version.document
        for each in [*found.managed_policies.values()]
        for version in each.versions
        if version.is_default
    ]
    return [_document(text) for text in [*found.policies.values(), *attached]]


def trust(role: str) -> Mapping[str, Any]:
    """Return the trust policy of a role, which lets nobody assume it if the role is missing."""
    found = _role(role)
    return {} if found is None else _document(found.assume_role_policy_document)


def _role(arn: str) -> Any:
    from moto.iam.models import iam_backends

    roles = iam_backends[_account(arn)]["aws"].roles
    # A copy: another thread may create a role meanwhile.
    return next((each for each in [*roles.values()] if each.arn == arn), None)


def _account(arn: str) -> str:
    return arn.split(":")[4]


def _document(text: Any) -> Mapping[str, Any]:
    if isinstance(text, Mapping):
        return text
    document: Mapping[str, Any] = json.loads(text if text.startswith("{") else unquote(text))
    return document


def _sts() -> Any:
    from moto.sts.models import sts_backends

    return sts_backends[ACCOUNT_ID]["aws"]
