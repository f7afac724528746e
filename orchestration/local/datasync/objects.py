"""Locations in S3: a bucket, a prefix in it, and the role that reaches them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from orchestration.local.account import roles, sharing, storage
from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject, now
from orchestration.local.datasync.locations import File
from orchestration.local.datasync.rules import refusal

_SERVICE: Final = "datasync.amazonaws.com"
_FORBIDDEN: Final = re.compile(r"//|/\./|/\.\./")


@dataclass(frozen=True)
class StoredFile:
    """An object as a file."""

    key: Any
    """The object, as moto keeps it."""

    @property
    def size(self) -> int:
        """Its bytes."""
        return int(self.key.size)

    @property
    def etag(self) -> str | None:
        """Its ETag."""
        return str(self.key.etag)

    def content(self) -> bytes:
        """Read it."""
        return bytes(self.key.value)


@dataclass
class S3Location:
    """One location in S3."""

    arn: str
    request: JsonObject
    tags: dict[str, str]
    created: datetime = field(default_factory=now)
    kind = "S3"

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
    def region(self) -> str | None:
        """The region of the bucket."""
        return storage.bucket_region(self.bucket)

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

    def files(self) -> dict[str, File]:
        """Return the objects below the prefix, in order; those of folders are left out."""
        prefix = self.prefix
        return {
            key[len(prefix) :]: StoredFile(stored)
            for key, stored in storage.shared(self.bucket).items()
            if key.startswith(prefix) and key != prefix and not key.endswith("/")
        }

    def lets_read(self, path: str) -> bool:
        """Return whether the bucket's owner lets the location's role read an object."""
        return self._allows("s3:GetObject", path)

    def lets_write(self, path: str) -> bool:
        """Return whether the bucket's owner lets the location's role write an object."""
        return self._allows("s3:PutObject", path)

    def write(self, path: str, file: File, options: JsonObject) -> None:
        """Write a copy of a file; one of an object keeps its metadata, and mostly its tags."""
        key, stored = self.prefix + path, self.storage_class
        if isinstance(file, StoredFile):
            _backend().copy_object(file.key, self.bucket, key, storage=stored)
            if options.get("ObjectTags") == "NONE":
                copy = _backend().get_object(self.bucket, key)
                _backend().tagger.delete_all_tags_for_resource(copy.arn)
        else:
            _backend().put_object(self.bucket, key, file.content(), storage=stored)

    def remove(self, path: str) -> None:
        """Delete an object."""
        _backend().delete_object(self.bucket, self.prefix + path)

    def _allows(self, action: str, path: str) -> bool:
        role = self.request["S3Config"]["BucketAccessRoleArn"]
        return sharing.allows(self.bucket, action, self.prefix + path, role)


def check(request: JsonObject) -> None:
    """Raise the service's error if a request for a location breaks a rule."""
    subdirectory = request.get("Subdirectory", "")
    if _FORBIDDEN.search(subdirectory):
        raise refusal("subdirectories", subdirectory=subdirectory)
    role = request["S3Config"]["BucketAccessRoleArn"]
    if not roles.exists(role):
        raise refusal("role exists", role=role)
    if not roles.trusts(role, _SERVICE):
        raise refusal("role trusts DataSync", role=role)
    bucket = request["S3BucketArn"].rpartition(":")[2]
    if sharing.owner(bucket) is None:
        raise refusal("bucket exists", bucket=bucket)
    prefix = {"s3:prefix": subdirectory.strip("/")}
    if not sharing.allows(bucket, "s3:ListBucket", principal=role, context=prefix):
        raise refusal("bucket of another account", bucket=bucket)


def _backend() -> Any:
    from moto.s3.models import s3_backends

    return s3_backends[ACCOUNT_ID]["aws"]
