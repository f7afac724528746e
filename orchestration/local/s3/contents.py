"""ETags, checksums and encryption as S3 tells them, where moto 5.2.5 tells other ones.

It hands on a source's checksum to the copy, has a MD5 for an ETag under KMS, too, tells nothing of
the encryption that every object has, looks at a checksum of parts as at one of the whole, and asks
neither the principals nor the conditions of a bucket's policy that denies.
`tests/local/s3/test_contents.py` fails where an object is described otherwise than by S3.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html (ETags)
https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html
https://docs.aws.amazon.com/AmazonS3/latest/userguide/default-encryption-faq.html
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from orchestration.local.account.faults import Faults
from orchestration.local.engine.seams import replace

_COMPUTED: Final = ("CRC32", "SHA1", "SHA256")
"""The checksums that moto computes without libraries that may be missing."""
_OF_PARTS: Final = "COMPOSITE"


def install(faults: Faults) -> None:
    """Make moto describe objects as S3 does, and damage the copies that faults are about."""
    from moto.s3.models import FakeBucket, FakeKey, S3Backend
    from moto.s3.responses import S3Response

    replace(FakeKey, "__init__", _encrypted(FakeKey.__init__))
    replace(FakeKey, "etag", property(_sealed(vars(FakeKey)["etag"].fget)))
    replace(S3Backend, "copy_object", _copied(S3Backend.copy_object, faults))
    replace(S3Response, "head_object", _described(S3Response.head_object))
    replace(FakeBucket, "get_permission", _undenied(FakeBucket.get_permission))


def _undenied(permission: Any) -> Any:
    """Leave denials to :mod:`~orchestration.local.account.sharing`, which asks conditions, too."""
    from moto.iam.access_control import PermissionResult

    def get_permission(self: Any, action: str, resource: str) -> Any:
        found = permission(self, action, resource)
        return PermissionResult.NEUTRAL if found == PermissionResult.DENIED else found

    return get_permission


def _encrypted(begin: Any) -> Any:
    def __init__(self: Any, *args: Any, **more: Any) -> None:
        begin(self, *args, **more)
        self.encryption = self.encryption or "AES256"

    return __init__


def _sealed(plain: Any) -> Any:
    def etag(self: Any) -> str:
        own: str = plain(self)
        if not self.encryption.startswith("aws:kms"):
            return own
        sealed = f"{self.kms_key_id} {self.bucket_name}/{self.name} {own}"
        return f'"{hashlib.md5(sealed.encode(), usedforsecurity=False).hexdigest()}"'

    return etag


def _copied(copy: Any, faults: Faults) -> Any:
    def copy_object(self: Any, source: Any, bucket: str, key: str, *args: Any, **more: Any) -> None:
        copy(self, source, bucket, key, *args, **more)
        made = self.get_object(bucket, key)
        if faults.damages(key):
            made.value = bytes([made.value[0] ^ 1]) + made.value[1:]
            made._etag = None
        # One request writes the copy: it has no parts, whatever its source was made of.
        made.multipart, made.checksum_parts, made.checksum_type = None, None, "FULL_OBJECT"
        made.checksum_value = _checksum(made, source)

    return copy_object


def _checksum(made: Any, source: Any) -> str | None:
    from moto.s3.utils import compute_checksum

    if made.checksum_value and made.checksum_algorithm in _COMPUTED:
        return compute_checksum(made.value, algorithm=made.checksum_algorithm).decode()
    return None if source.checksum_type == _OF_PARTS else made.checksum_value


def _described(head: Any) -> Any:
    def head_object(
        self: Any, bucket_name: str, query: Any, key_name: str, headers: Any
    ) -> tuple[int, dict[str, Any], str]:
        status, described, body = head(self, bucket_name, query, key_name, headers)
        if status != 200:
            return status, described, body
        key = self.backend.get_object(bucket_name, key_name)
        algorithm = f"x-amz-checksum-{key.checksum_algorithm}".lower()
        if algorithm in described and key.checksum_type:
            described["x-amz-checksum-type"] = key.checksum_type
            if key.checksum_type == _OF_PARTS:
                described[algorithm] = f"{key.checksum_value}-{key.checksum_parts}"
        return status, described, body

    return head_object
