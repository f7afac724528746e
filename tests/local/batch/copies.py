"""Jobs that copy objects of the embedded S3, as S3 Control's API takes them."""

from __future__ import annotations

import itertools
from typing import Any
from urllib.parse import quote

from orchestration.local import EmbeddedAws
from orchestration.local.run.executions import role
from tests.local.conftest import wait

ACCOUNT = "123456789012"
SOURCE, TARGET = "manifested", "copies"
SERVICE = "batchoperations.s3.amazonaws.com"
ENDED = ("Complete", "Cancelled", "Failed")
_NUMBERS = itertools.count()


class Copies:
    """What the tests need of S3 Batch Operations in one account."""

    def __init__(self, aws: EmbeddedAws) -> None:
        self.aws, self.api, self.s3 = aws, aws.client("s3control"), aws.client("s3")
        for bucket in (SOURCE, TARGET):
            self.s3.create_bucket(Bucket=bucket)
        versioned = {"Status": "Enabled"}
        self.s3.put_bucket_versioning(Bucket=SOURCE, VersioningConfiguration=versioned)
        self.role = role(aws, "Copies", SERVICE)

    def put(self, key: str, content: str) -> str:
        """Write an object, and return its version."""
        made = self.s3.put_object(Bucket=SOURCE, Key=key, Body=content.encode())
        return str(made["VersionId"])

    def manifest(self, *rows: tuple[str, ...], key: str = "manifest.csv") -> dict[str, Any]:
        """Write a manifest of keys, or of keys and versions, and return it as a job takes it."""
        lines = [",".join((SOURCE, quote(row[0]), *row[1:])) for row in rows]
        return self.listed("\n".join(lines), versions=any(len(row) > 1 for row in rows), key=key)

    def listed(
        self, text: str, *, versions: bool = False, key: str = "manifest.csv"
    ) -> dict[str, Any]:
        self.put(key, text)
        place = {"Bucket": SOURCE, "Key": key}
        etag = self.s3.get_object_attributes(**place, ObjectAttributes=["ETag"])["ETag"]
        fields = ["Bucket", "Key", *(["VersionId"] if versions else [])]
        return {
            "Spec": {"Format": "S3BatchOperations_CSV_20180820", "Fields": fields},
            "Location": {"ObjectArn": f"arn:aws:s3:::{SOURCE}/{key}", "ETag": etag},
        }

    def start(self, manifest: dict[str, Any] | None, **more: Any) -> str:
        copy = {"TargetResource": f"arn:aws:s3:::{TARGET}", "TargetKeyPrefix": "to"}
        request = {
            "AccountId": ACCOUNT,
            "ClientRequestToken": f"token-{next(_NUMBERS)}",
            "ConfirmationRequired": False,
            "Manifest": manifest,
            "Operation": {"S3PutObjectCopy": copy | more.pop("copy", {})},
            "Priority": 10,
            "Report": {
                "Enabled": True,
                "Bucket": f"arn:aws:s3:::{TARGET}",
                "Prefix": "reports",
                "Format": "Report_CSV_20180820",
                "ReportScope": "AllTasks",
            },
            "RoleArn": self.role,
            **more,
        }
        made = self.api.create_job(**{k: v for k, v in request.items() if v is not None})
        return str(made["JobId"])

    def job(self, identifier: str) -> dict[str, Any]:
        described = self.api.describe_job(AccountId=ACCOUNT, JobId=identifier)
        return dict(described["Job"])

    def end(self, identifier: str) -> dict[str, Any]:
        """Wait for the end of a job, and describe it."""
        return wait(lambda: self.job(identifier), lambda job: job["Status"] in ENDED)

    def cancel(self, identifier: str) -> None:
        self.api.update_job_status(
            AccountId=ACCOUNT, JobId=identifier, RequestedJobStatus="Cancelled"
        )

    def keys(self, prefix: str) -> list[str]:
        listed = self.s3.list_objects_v2(Bucket=TARGET, Prefix=prefix)
        return [entry["Key"] for entry in listed.get("Contents", [])]

    def read(self, key: str) -> str:
        return str(self.s3.get_object(Bucket=TARGET, Key=key)["Body"].read().decode())
