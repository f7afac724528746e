"""Requests to S3 that break its rules, each of them once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestration.local import EmbeddedAws
from tests.local.conftest import BUCKET

KEY = "arn:aws:kms:{}:123456789012:key/0a1b2c3d"


def _put(**more: Any) -> Callable[[EmbeddedAws], None]:
    request = {"Bucket": BUCKET, "Key": "object", "Body": b"x", **more}
    return lambda aws: aws.client("s3").put_object(**request)


def _copy(source: str, **more: Any) -> Callable[[EmbeddedAws], None]:
    place = {"Bucket": BUCKET, "Key": "here/it-is", "CopySource": f"{BUCKET}/{source}"}
    request = {**place, **more}
    return lambda aws: aws.client("s3").copy_object(**request)


def _upload(aws: EmbeddedAws, **more: Any) -> dict[str, Any]:
    s3 = aws.client("s3")
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="large")["UploadId"]
    request = {"Bucket": BUCKET, "Key": "large", "UploadId": upload, "PartNumber": 1, **more}
    part = s3.upload_part(**request, Body=b"x")
    return {"Bucket": BUCKET, "Key": "large", "UploadId": upload, "ETag": part["ETag"]}


def _small_parts(aws: EmbeddedAws) -> None:
    made = _upload(aws)
    tag = made.pop("ETag")
    aws.client("s3").upload_part(**made, PartNumber=2, Body=b"x")
    parts = [{"PartNumber": number, "ETag": tag} for number in (1, 2)]
    aws.client("s3").complete_multipart_upload(**made, MultipartUpload={"Parts": parts})


def _other_account(aws: EmbeddedAws) -> None:
    theirs = aws.client("s3", account="999988887777")
    theirs.create_bucket(Bucket="theirs")
    theirs.put_object(Bucket="theirs", Key="data/file", Body=b"x")
    aws.client("s3").get_object(Bucket="theirs", Key="data/file")


BREAKING: dict[str, Callable[[EmbeddedAws], Any]] = {
    "bucket names": lambda aws: aws.client("s3").create_bucket(Bucket="My_Bucket"),
    "buckets exist": _put(Bucket="no-such-bucket"),
    "objects exist": _copy("no-such-object"),
    "keys at most": _put(Key="ä" * 513),
    "metadata at most": _put(Metadata={"about": "x" * 2048}),
    "copies change something": lambda aws: (
        _put(Key="here/it-is")(aws),
        _copy("here/it-is")(aws),
    ),
    "copies of what is expected": _copy("data/file", CopySourceIfMatch='"other"'),
    "tag keys of AWS": _put(Tagging="aws:owner=me"),
    "tag keys once": _put(Tagging="owner=me&owner=you"),
    "ten tags": _put(Tagging="&".join(f"key{number}=x" for number in range(11))),
    "storage classes": _put(StorageClass="ICEBERG"),
    "keys with KMS": _copy("data/file", SSEKMSKeyId=KEY.format("us-east-1")),
    "keys of the bucket's region": _copy(
        "data/file", ServerSideEncryption="aws:kms", SSEKMSKeyId=KEY.format("eu-west-1")
    ),
    "owners as expected": _copy("data/file", ExpectedSourceBucketOwner="999999999999"),
    "buckets of other accounts": _other_account,
    "uploads exist": lambda aws: _upload(aws, UploadId="no-such-upload"),
    "part numbers": lambda aws: _upload(aws, PartNumber=10_001),
    "parts of 5 MiB": _small_parts,
}
ALSO: dict[str, tuple[str, Callable[[EmbeddedAws], Any]]] = {
    "storage classes of copies": ("storage classes", _copy("data/file", StorageClass="ICEBERG")),
    "tag keys of AWS on copies": (
        "tag keys of AWS",
        _copy("data/file", Tagging="aws:owner=me", TaggingDirective="REPLACE"),
    ),
    "tag keys once on copies": (
        "tag keys once",
        _copy("data/file", Tagging="owner=me&owner=you", TaggingDirective="REPLACE"),
    ),
    "ten tags on copies": (
        "ten tags",
        _copy(
            "data/file",
            Tagging="&".join(f"key{number}=x" for number in range(11)),
            TaggingDirective="REPLACE",
        ),
    ),
}
