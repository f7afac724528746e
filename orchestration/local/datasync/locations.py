"""Locations in S3: a bucket, a prefix in it, and the role that reaches them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from orchestration.local.account import storage
from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject, now
from orchestration.local.datasync.rules import refusal

_SERVICE: Final = "datasync.amazonaws.com"
_FORBIDDEN: Final = re.compile(r"//|/\./|/\.\./")


@dataclass
class Location:
    """One location."""

    arn: str
    request: JsonObject
    tags: dict[str, str]
    created: datetime = field(default_factory=now)

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        return str(self.request["S3BucketArn"]).rpartition(":")[2]

    @property
    def prefix(self) -> str:
        """The beginning of all keys, empty or with a slash at its end."""
        inner = str(self.request.get("Subdirectory", "")).strip("/")
        return f"{inner}/" if inner else ""

    @property
    def uri(self) -> str:
        """The location as DataSync writes it."""
        return f"s3://{self.bucket}/{self.prefix}"

    @property
    def storage_class(self) -> str:
        """The storage class of what is written here."""
        return str(self.request.get("S3StorageClass", "STANDARD"))

    def description(self) -> JsonObject:
        """Return the location as in a Describe response."""
        return {
            "LocationArn": self.arn,
            "LocationUri": self.uri,
            "S3StorageClass": self.storage_class,
            "S3Config": self.request["S3Config"],
            "CreationTime": self.created,
        }


def check(request: JsonObject) -> None:
    """Raise the service's error if a request for a location breaks a rule."""
    subdirectory = request.get("Subdirectory", "")
    if _FORBIDDEN.search(subdirectory):
        raise refusal("subdirectories", subdirectory=subdirectory)
    role = request["S3Config"]["BucketAccessRoleArn"]
    trust = _trust(role)
    if trust is None:
        raise refusal("role exists", role=role)
    if not _trusts(trust):
        raise refusal("role trusts DataSync", role=role)
    bucket = request["S3BucketArn"].rpartition(":")[2]
    if not storage.bucket_exists(bucket):
        raise refusal("bucket exists", bucket=bucket)


def _trust(role: str) -> Any:
    """Return the trust policy of a role, or None if it does not exist."""
    from moto.iam.models import iam_backends

    roles = iam_backends[ACCOUNT_ID]["aws"].roles.values()
    document = next((r.assume_role_policy_document for r in roles if r.arn == role), None)
    return json.loads(document) if isinstance(document, str) else document


def _trusts(trust: Any) -> bool:
    statements = trust["Statement"]
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal", {})
        services = principal.get("Service", []) if isinstance(principal, dict) else []
        if statement["Effect"] == "Allow" and _SERVICE in (
            [services] if isinstance(services, str) else services
        ):
            return True
    return False
