"""The rules of S3 that a pipeline can break; moto enforces those that `service` does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.rules import Rule

_ERRORS = "guide: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html"
_TAGS = "guide: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-tagging.html"

RULES: Final[Mapping[str, Rule]] = {
    "bucket names": Rule(
        "InvalidBucketName",
        "The specified bucket is not valid.",
        "guide: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html; "
        "wording: https://github.com/localstack/localstack/blob/main/tests/aws/services/s3/"
        "test_s3.snapshot.json",
    ),
    "buckets exist": Rule("NoSuchBucket", "The specified bucket does not exist", _ERRORS, 404),
    "objects exist": Rule("NoSuchKey", "The specified key does not exist.", _ERRORS, 404),
    "keys at most": Rule("KeyTooLongError", "Your key is too long", _ERRORS),
    "metadata at most": Rule(
        "MetadataTooLarge",
        "Your metadata headers exceed the maximum allowed metadata size",
        _ERRORS,
    ),
    "copies change something": Rule(
        "InvalidRequest",
        "This copy request is illegal because it is trying to copy an object to itself without "
        "changing the object's metadata, storage class, website redirect location or encryption "
        "attributes.",
        "guide: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html",
    ),
    "copies of what is expected": Rule(
        "PreconditionFailed",
        "At least one of the pre-conditions you specified did not hold",
        "guide: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html",
        412,
    ),
    "tag keys of AWS": Rule("InvalidTag", "Your TagKey cannot be prefixed with aws:", _TAGS),
    "tag keys once": Rule(
        "InvalidTag", "Cannot provide multiple Tags with the same key", f"{_TAGS}; wording assumed"
    ),
    "ten tags": Rule("BadRequest", "Object tags cannot be greater than 10", _TAGS),
    "storage classes": Rule(
        "InvalidStorageClass", "The storage class you specified is not valid", _ERRORS
    ),
    "keys with KMS": Rule(
        "InvalidArgument",
        "Server Side Encryption with AWS KMS managed key requires HTTP header "
        "x-amz-server-side-encryption : aws:kms",
        "issue: the message as users of presigned uploads quote it",
    ),
    "keys of the bucket's region": Rule(
        "KMS.NotFoundException",
        "Invalid arn {region}",
        "issue: the message as users of replication quote it; rule: "
        "https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html",
    ),
    "owners as expected": Rule(
        "AccessDenied",
        "Access Denied",
        "guide: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-owner-condition.html",
        403,
    ),
    "buckets of other accounts": Rule(
        "AccessDenied",
        "Access Denied",
        "guide: https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
        "example-walkthroughs-managing-access-example2.html",
        403,
    ),
    "uploads exist": Rule(
        "NoSuchUpload",
        "The specified upload does not exist. The upload ID may be invalid, or the upload may have "
        "been aborted or completed.",
        _ERRORS,
        404,
    ),
    "part numbers": Rule(
        "InvalidArgument",
        "Part number must be an integer between 1 and 10000, inclusive",
        "guide: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html",
    ),
    "parts of 5 MiB": Rule(
        "EntityTooSmall",
        "Your proposed upload is smaller than the minimum allowed object size.",
        _ERRORS,
    ),
}
