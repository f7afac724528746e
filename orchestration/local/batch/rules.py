"""The rules of S3 Batch Operations that a pipeline can break, in two tables.

Sources: "model" is the text of a shape in botocore's service model (1.43); "guide" is a page of the
user guide, below https://docs.aws.amazon.com/AmazonS3/latest/userguide/. Where only the rule is
documented, the message is ours, and marked "wording assumed", and its code "code assumed".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.rules import Rule

_CREATE: Final = "guide: batch-ops-create-job.html"
_COPY: Final = "guide: batch-ops-copy-object.html"
_TROUBLE: Final = "guide: troubleshooting-batch-operations.html"
_STATUS: Final = "guide: batch-ops-job-status.html"

RULES: Final[Mapping[str, Rule]] = {
    # CreateJob
    "copies only": Rule(
        "InvalidRequest",
        "The embedded AWS runs jobs of S3PutObjectCopy with a CSV manifest only.",
        "model: JobOperation; a limit of the simulation",
    ),
    "manifest or generator": Rule(
        "InvalidRequest",
        "Exactly one of Manifest and ManifestGenerator must be given.",
        "model: CreateJobRequest.ManifestGenerator; code and wording assumed",
    ),
    "fields of a manifest": Rule(
        "InvalidRequest",
        "The fields of a CSV manifest must begin with Bucket and Key, got {fields}.",
        "model: JobManifestSpec.Fields; code and wording assumed",
    ),
    "reports have a place": Rule(
        "InvalidRequest",
        "A report that is enabled needs Bucket, Format and ReportScope.",
        f"{_CREATE}: Report; code and wording assumed",
    ),
    "tokens are for one request": Rule(
        "IdempotencyException",
        "The client request token was used with other parameters.",
        "model: CreateJob, its errors; wording assumed",
    ),
    "roles exist": Rule(
        "InvalidRequest",
        "Invalid role ARN: {role} does not exist.",
        f"{_CREATE}: RoleArn; code and wording assumed",
    ),
    "copies are made where they go": Rule(
        "InvalidRequest",
        "The job must be created in the region of the bucket that is copied to, {region}.",
        f"{_COPY}: restrictions; code and wording assumed",
    ),
    # DescribeJob, UpdateJobStatus
    "jobs exist": Rule("NoSuchJob", "The specified job does not exist.", _TROUBLE, status=404),
    "ended jobs stay as they are": Rule(
        "JobStatusException",
        "Job {job} is {status}, and can't become {requested}.",
        f"{_STATUS}: terminal states; wording assumed",
    ),
}
"""The rules of requests."""

FAILURES: Final[Mapping[str, Rule]] = {
    "manifests can be read": Rule(
        "AccessDenied",
        "Reading the manifest is forbidden: AccessDenied",
        f"{_TROUBLE}; code assumed",
    ),
    "manifests exist": Rule(
        "ManifestNotFound",
        "The manifest object is not found.",
        f"{_CREATE}: Manifest; code and wording assumed",
    ),
    "manifests are as described": Rule(
        "ManifestETagMismatch",
        "The ETag of the manifest is not the one of the request.",
        "model: JobManifestLocation.ETag; "
        "issue: https://github.com/linz/geostore/issues/1687: the job fails; code and wording "
        "assumed",
    ),
    "manifests have lines": Rule(
        "InvalidManifestContent",
        "The manifest is empty, or a line of it does not have {columns} columns.",
        f"{_CREATE}: Specifying a manifest; code and wording assumed",
    ),
    "one source bucket": Rule(
        "InvalidManifestContent",
        "All objects of a manifest must be in one bucket.",
        f"{_COPY}; code and wording assumed",
    ),
    "reports can be written": Rule(
        "ReportBucketNotFound",
        "The job report could not be written to your report bucket. Please check your permissions.",
        f"{_TROUBLE}; code assumed",
    ),
    "half of the tasks succeed": Rule(
        "JobFailureThresholdExceeded",
        "The failure rate exceeded 50 percent after at least 1,000 tasks.",
        f"{_STATUS}: tracking job failure; code and wording assumed",
    ),
}
"""The rules whose breach fails a job, by the code and the reason of the failure."""
