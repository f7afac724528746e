"""The checks of requests to S3 that moto leaves out (5.2.5: `tests/local/test_rules.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, unquote

from orchestration.checks import documented
from orchestration.checks.patterns import matches
from orchestration.local.account import sharing, storage
from orchestration.local.account.protocol import JsonObject, Request, Service
from orchestration.local.account.rules import broken
from orchestration.local.s3.rules import RULES

_LONGEST_KEY = 1024
_MOST_METADATA = 2048
_OWNERS = ("ExpectedBucketOwner", "ExpectedSourceBucketOwner")
_ACTIONS = {
    "CopyObject": "s3:PutObject",
    "GetObjectAttributes": "s3:GetObject",
    "HeadBucket": "s3:ListBucket",
    "HeadObject": "s3:GetObject",
    "ListObjects": "s3:ListBucket",
    "ListObjectsV2": "s3:ListBucket",
}
"""The actions of operations that have another name."""
_CONDITION_KEYS = {
    "s3:delimiter": "Delimiter",
    "s3:max-keys": "MaxKeys",
    "s3:prefix": "Prefix",
    "s3:x-amz-acl": "ACL",
    "s3:x-amz-copy-source": "CopySource",
    "s3:x-amz-server-side-encryption": "ServerSideEncryption",
    "s3:x-amz-server-side-encryption-aws-kms-key-id": "SSEKMSKeyId",
    "s3:x-amz-storage-class": "StorageClass",
}
"""The fields that policies can speak of, by their condition keys.

https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
"""
_BY_KMS = ("aws:kms", "aws:kms:dsse")
_KEY = re.compile(r"arn:[\w-]+:kms:([\w-]+):")
_DIRECTORY = re.compile(r"<Type>\s*Directory\s*</Type>")
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
        if request.operation == "CreateBucket":
            _check_name(values)
        if len(str(values.get("Key", "")).encode()) > _LONGEST_KEY:
            raise broken(RULES, "keys at most")
        metadata = values.get("Metadata") or {}
        if sum(len(f"{key}{value}".encode()) for key, value in metadata.items()) > _MOST_METADATA:
            raise broken(RULES, "metadata at most")
        _check_tags(request)
        _check_encryption(values)
        _check_owners(request)
        if request.operation == "CopyObject":
            _check_source(values)
        if request.operation in _PARTS and not storage.has_upload(
            values["Bucket"], values["UploadId"]
        ):
            raise broken(RULES, "uploads exist")


def _check_name(values: JsonObject) -> None:
    name = values["Bucket"]
    # The configuration is text.
    is_directory = _DIRECTORY.search(str(values.get("CreateBucketConfiguration")))
    named = matches(documented.BUCKET, name)
    if not named or (name.endswith(documented.DIRECTORY) and not is_directory):
        raise broken(RULES, "bucket names")


def _check_owners(request: Request) -> None:
    values = request.parameters
    source = _source(values)[0] if request.operation == "CopyObject" else ""
    for field, bucket in zip(_OWNERS, (values.get("Bucket", ""), source), strict=True):
        owner = sharing.owner(bucket)
        if values.get(field, owner) != owner and owner is not None:
            raise broken(RULES, "owners as expected")
    for bucket, action, key in _touched(request):
        if not sharing.allows(bucket, action, key, request.account, _context(request)):
            raise broken(RULES, "buckets of other accounts")


def _touched(request: Request) -> Iterator[tuple[str, str, str]]:
    """Yield the buckets that a request reads or changes, each with the action and the key."""
    values, operation = request.parameters, request.operation
    if operation == "CopyObject":
        bucket, key = _source(values)
        yield bucket, "s3:GetObject", key
    if "Bucket" in values and operation != "CreateBucket":
        action = _ACTIONS.get(operation, f"s3:{operation}")
        yield values["Bucket"], action, str(values.get("Key", ""))


def _context(request: Request) -> dict[str, str]:
    values = {key: request.parameters.get(field) for key, field in _CONDITION_KEYS.items()}
    listing = {"s3:prefix": ""} if _ACTIONS.get(request.operation) == "s3:ListBucket" else {}
    return {**listing, **{key: str(value) for key, value in values.items() if value is not None}}


def _source(values: JsonObject) -> tuple[str, str]:
    bucket, _, key = unquote(values["CopySource"]).lstrip("/").partition("/")
    return bucket, key.partition("?versionId=")[0]


def _check_source(values: JsonObject) -> None:
    etag = storage.etag(storage.Location(*_source(values)))
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
