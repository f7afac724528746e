"""Completion reports: CSV files of tasks, and the manifest that lists them.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/batch-ops-examples-reports.html
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote_plus

from orchestration.local.account import sharing, storage
from orchestration.local.account.protocol import JsonObject, now
from orchestration.local.account.rules import broken
from orchestration.local.account.storage import Location
from orchestration.local.batch.copying import Outcome
from orchestration.local.batch.rules import FAILURES

_SCHEMA: Final = "Bucket, Key, VersionId, TaskStatus, ErrorCode, HTTPStatusCode, ResultMessage"


def write(job: str, report: JsonObject, outcomes: Sequence[Outcome], role: str) -> None:
    """Write the report of a job as its role, once at least one task has run."""
    if not report["Enabled"] or not outcomes:
        return
    bucket = report["Bucket"].rpartition(":")[2]
    prefix = report.get("Prefix", "").rstrip("/")
    folder = f"{prefix}/job-{job}" if prefix else f"job-{job}"
    manifest_key = f"{folder}/manifest.json"
    allowed = sharing.allows(bucket, "s3:PutObject", manifest_key, role)
    if not (storage.bucket_exists(bucket) and allowed):
        raise broken(FAILURES, "reports can be written")
    results = []
    for state in ("succeeded", "failed"):
        tasks = [each for each in outcomes if bool(each.code) == (state == "failed")]
        wanted = state == "failed" or report["ReportScope"] == "AllTasks"
        if tasks and wanted:
            results.append(_written(bucket, folder, state, tasks))
    manifest = {
        "Format": report["Format"],
        "ReportCreationDate": now().isoformat(),
        "Results": results,
        "ReportSchema": _SCHEMA,
    }
    storage.write(Location(bucket, manifest_key), json.dumps(manifest).encode())


def _written(bucket: str, folder: str, state: str, tasks: Sequence[Outcome]) -> JsonObject:
    text = io.StringIO()
    rows = (task.row for task in tasks)
    csv.writer(text, lineterminator="\n").writerows(
        (r[0], quote_plus(r[1], "/"), *r[2:]) for r in rows
    )
    content = text.getvalue().encode()
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    key = f"{folder}/results/{hashlib.sha1(content, usedforsecurity=False).hexdigest()}.csv"
    storage.write(Location(bucket, key), content)
    return {"TaskExecutionStatus": state, "Bucket": bucket, "MD5Checksum": digest, "Key": key}
