"""ETags and checksums of the embedded S3 are those that S3 documents."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from botocore.config import Config

from orchestration.local import EmbeddedAws, Fault

BUCKET, CONTENT = "contents", b"content"
MD5 = f'"{hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()}"'
SHA256 = base64.b64encode(hashlib.sha256(CONTENT).digest()).decode()
KEY = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d"
UNASKED = Config(request_checksum_calculation="when_required")


@pytest.fixture(scope="module")
def s3(aws: EmbeddedAws) -> Any:
    aws.client("s3").create_bucket(Bucket=BUCKET)
    return aws.client("s3")


def copied(s3: Any, key: str, **more: Any) -> dict[str, Any]:
    place = {"Bucket": BUCKET, "Key": f"copy/{key}"}
    made: dict[str, Any] = s3.copy_object(**place, CopySource=f"{BUCKET}/{key}", **more)
    assert head(s3, f"copy/{key}")["ETag"] == made["CopyObjectResult"]["ETag"]
    return made


def head(s3: Any, key: str) -> dict[str, Any]:
    described: dict[str, Any] = s3.head_object(Bucket=BUCKET, Key=key, ChecksumMode="ENABLED")
    return described


def in_parts(s3: Any, key: str) -> None:
    place = {"Bucket": BUCKET, "Key": key}
    begun = s3.create_multipart_upload(**place, ChecksumAlgorithm="SHA256")
    upload = {**place, "UploadId": begun["UploadId"]}
    part = s3.upload_part(**upload, PartNumber=1, Body=CONTENT, ChecksumAlgorithm="SHA256")
    done = {"PartNumber": 1, "ETag": part["ETag"], "ChecksumSHA256": part["ChecksumSHA256"]}
    s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": [done]})


def test_a_copy_has_the_checksum_and_the_etag_of_its_source(s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="plain", Body=CONTENT, ChecksumAlgorithm="SHA256")
    assert head(s3, "plain")["ETag"] == MD5
    assert head(s3, "plain")["ChecksumSHA256"] == SHA256
    made = copied(s3, "plain")
    assert made["CopyObjectResult"]["ETag"] == MD5
    assert made["CopyObjectResult"]["ChecksumSHA256"] == SHA256
    assert made["ServerSideEncryption"] == "AES256"


def test_an_object_without_a_checksum_has_an_etag_only(aws: EmbeddedAws, s3: Any) -> None:
    aws.client("s3", config=UNASKED).put_object(Bucket=BUCKET, Key="bare", Body=CONTENT)
    described = [name for name in head(s3, "bare") if name.startswith("Checksum")]
    assert described == []
    assert copied(s3, "bare")["CopyObjectResult"]["ETag"] == MD5


def test_a_copy_of_parts_has_the_checksum_of_the_whole(s3: Any) -> None:
    in_parts(s3, "parts")
    assert head(s3, "parts")["ETag"].endswith('-1"')
    assert head(s3, "parts")["ChecksumSHA256"].endswith("-1")
    made = copied(s3, "parts")["CopyObjectResult"]
    assert (made["ETag"], made["ChecksumSHA256"]) == (MD5, SHA256)
    assert head(s3, "copy/parts")["ChecksumType"] == "FULL_OBJECT"


def test_an_etag_under_kms_is_no_md5(s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="open", Body=CONTENT, ChecksumAlgorithm="SHA256")
    made = copied(s3, "open", ServerSideEncryption="aws:kms", SSEKMSKeyId=KEY)
    assert made["CopyObjectResult"]["ETag"] != MD5
    assert made["CopyObjectResult"]["ChecksumSHA256"] == SHA256


def test_a_damaged_copy_tells_what_it_holds(aws: EmbeddedAws, s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="hurt", Body=CONTENT, ChecksumAlgorithm="SHA256")
    aws.inject(Fault.damage("copy/hurt"))
    made = copied(s3, "hurt")["CopyObjectResult"]
    stored = s3.get_object(Bucket=BUCKET, Key="copy/hurt")["Body"].read()
    assert stored != CONTENT
    assert made["ChecksumSHA256"] == base64.b64encode(hashlib.sha256(stored).digest()).decode()
    assert made["ETag"] == f'"{hashlib.md5(stored, usedforsecurity=False).hexdigest()}"'
    assert copied(s3, "hurt")["CopyObjectResult"]["ETag"] == MD5
