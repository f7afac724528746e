"""The tasks of a job: each copies one object, or one version of an object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from orchestration.local.account import sharing, storage
from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject
from orchestration.local.batch.manifests import Line

_LARGEST: Final = 5 * 1000**3
_LONGEST_KEY: Final = 1024
_ARCHIVED: Final = ("GLACIER", "DEEP_ARCHIVE")
"""Classes whose objects must be restored first; of `GLACIER_IR` they are not."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one task."""

    line: Line
    code: str = ""
    """Empty: the object was copied."""
    status: int = 200
    message: str = "Successful"

    @property
    def row(self) -> tuple[str, ...]:
        """The task as a row of the completion report."""
        version = self.line.version or ""
        state = "failed" if self.code else "succeeded"
        return (
            self.line.bucket,
            self.line.key,
            version,
            state,
            self.code,
            str(self.status),
            self.message,
        )


def copied(line: Line, operation: JsonObject, role: str) -> Outcome:
    """Copy what a line names as a role, and return how that ended."""
    target = operation["TargetResource"].rpartition(":")[2]
    if line.version == "":
        message = "Task failed due to missing VersionId"
        return Outcome(line, "InvalidRequest", 400, message)
    if sharing.owner(line.bucket) is None or not storage.bucket_exists(target):
        return Outcome(line, "NoSuchBucket", 404, "The specified bucket does not exist")
    key = _key(line, operation)
    if not _permitted(line, target, key, role):
        return Outcome(line, "AccessDenied", 403, "Access Denied")
    source = _source(line)
    if source is None:
        return Outcome(line, *_missing(line))
    if source.size > _LARGEST:
        message = "The specified copy source is larger than the maximum allowable size"
        return Outcome(line, "InvalidRequest", 400, message)
    if source.storage_class in _ARCHIVED and source.expiry_date is None:
        message = "The operation is not valid for the object's storage class"
        return Outcome(line, "InvalidObjectState", 403, message)
    if len(key.encode()) > _LONGEST_KEY:
        return Outcome(line, "KeyTooLongError", 400, "Your key is too long")
    _copy(source, target, key, operation)
    return Outcome(line)


def _key(line: Line, operation: JsonObject) -> str:
    prefix = operation.get("TargetKeyPrefix", "").rstrip("/")
    return f"{prefix}/{line.key}" if prefix else line.key


def _permitted(line: Line, target: str, key: str, role: str) -> bool:
    """Return whether a role may read what a line names, with its tags, and write the copy."""
    reading = "s3:GetObject" if line.version in (None, "null") else "s3:GetObjectVersion"
    return all(
        sharing.allows(bucket, f"{action}{tags}", name, role)
        for bucket, action, name in (
            (line.bucket, reading, line.key),
            (target, "s3:PutObject", key),
        )
        for tags in ("", "Tagging")
    )


def _source(line: Line) -> Any:
    version = None if line.version in (None, "null") else line.version
    return _backend().get_object(line.bucket, line.key, version)


def _missing(line: Line) -> tuple[str, int, str]:
    if line.version not in (None, "null"):
        return "NoSuchVersion", 404, "The specified version does not exist."
    return "NoSuchKey", 404, "The specified key does not exist."


def _copy(source: Any, bucket: str, key: str, operation: JsonObject) -> None:
    key_id = operation.get("SSEAwsKmsKeyId")
    backend = _backend()
    backend.copy_object(
        source,
        bucket,
        key,
        storage=operation.get("StorageClass", "STANDARD"),
        encryption=None if key_id is None else "aws:kms",
        kms_key_id=key_id,
        bucket_key_enabled=operation.get("BucketKeyEnabled"),
    )
    tags = operation.get("NewObjectTagging")
    if tags is not None:
        copy = backend.buckets[bucket].keys[key]
        backend.tagger.delete_all_tags_for_resource(copy.arn)
        backend.tagger.tag_resource(copy.arn, tags)


def _backend() -> Any:
    from moto.s3.models import s3_backends

    return s3_backends[ACCOUNT_ID]["aws"]
