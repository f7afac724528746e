"""Callers, by their access keys: sessions of roles, and the account itself, which may do all."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from orchestration.local.account.protocol import ACCOUNT_ID


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
    assumed = _sts().get_assumed_role_from_access_key(access_key)
    return None if assumed is None else str(assumed.role_arn)


def policies(role: str) -> list[Mapping[str, Any]]:
    """Return the policies of a role, its own and those attached to it; none if it is missing."""
    from moto.iam.models import iam_backends

    backend = iam_backends[ACCOUNT_ID]["aws"]
    found = next((each for each in [*backend.roles.values()] if each.arn == role), None)
    if found is None:
        return []
    attached = [
        version.document
        for each in [*found.managed_policies.values()]
        for version in each.versions
        if version.is_default
    ]
    return [_document(text) for text in [*found.policies.values(), *attached]]


def _document(text: Any) -> Mapping[str, Any]:
    if isinstance(text, Mapping):
        return text
    document: Mapping[str, Any] = json.loads(text if text.startswith("{") else unquote(text))
    return document


def _sts() -> Any:
    from moto.sts.models import sts_backends

    return sts_backends[ACCOUNT_ID]["aws"]
