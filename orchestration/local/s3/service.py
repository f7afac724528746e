"""The checks of requests to S3 that moto leaves out (5.2.5: `tests/local/test_rules.py`)."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote

from orchestration.local.account import storage
from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject, Request, Service
from orchestration.local.account.rules import broken
from orchestration.local.s3.rules import RULES

_LONGEST_KEY = 1024
_MOST_METADATA = 2048
_OWNERS = ("ExpectedBucketOwner", "ExpectedSourceBucketOwner")
_BY_KMS = ("aws:kms", "aws:kms:dsse")
_KEY = re.compile(r"arn:[\w-]+:kms:([\w-]+):")
_PARTS = ("UploadPart", "UploadPartCopy", "CompleteMultipartUpload", "ListParts")


class S3(Service):
    """S3: moto answers what these checks let pass."""

    name = "s3"

    def __init__(self) -> None:
        super().__init__({})

    def handles(self, request: Request) -> bool:
        """Return False: moto answers every call."""
        return False

    def check(self, request: Request) -> None:
        """Raise S3's error for a request that moto would accept."""
        values = request.parameters
        if len(str(values.get("Key", "")).encode()) > _LONGEST_KEY:
            raise broken(RULES, "keys at most")
        metadata = values.get("Metadata") or {}
        if sum(len(f"{key}{value}".encode()) for key, value in metadata.items()) > _MOST_METADATA:
            raise broken(RULES, "metadata at most")
        _check_tags(request)
        _check_encryption(values)
        owners = (values.get(field, ACCOUNT_ID) for field in _OWNERS)
        if any(owner != ACCOUNT_ID for owner in owners):
            raise broken(RULES, "owners as expected")
        if request.operation == "CopyObject":
            _check_source(values)
        if request.operation in _PARTS and not storage.has_upload(
            values["Bucket"], values["UploadId"]
        ):
            raise broken(RULES, "uploads exist")


def _check_source(values: JsonObject) -> None:
    bucket, _, key = unquote(values["CopySource"]).lstrip("/").partition("/")
    etag = storage.etag(storage.Location(bucket, key))
    expected = values.get("CopySourceIfMatch", etag)
    if etag is not None and str(expected).strip('"') != etag.strip('"'):
        raise broken(RULES, "copies of what is expected")


def _check_tags(request: Request) -> None:
    # PutObjectTagging has its tags in its body, as text.
    whole = request.operation != "PutObjectTagging"
    tags = request.parameters.get("Tagging", "") if whole else ""
    keys = [key for key, _ in parse_qsl(tags, keep_blank_values=True)]
    if len(keys) > len(set(keys)):
        raise broken(RULES, "tag keys once")


def _check_encryption(values: JsonObject) -> None:
    key = values.get("SSEKMSKeyId")
    if key is None:
        return
    if values.get("ServerSideEncryption") not in _BY_KMS:
        raise broken(RULES, "keys with KMS")
    arn = _KEY.match(key)
    if arn is not None and arn[1] != storage.bucket_region(values["Bucket"]):
        raise broken(RULES, "keys of the bucket's region", region=arn[1])
