"""The function of Lambda: which model scores tonight."""

from __future__ import annotations

from typing import Any

import boto3


def handler(event: dict[str, Any], context: object) -> dict[str, str]:
    bucket, _, prefix = event["models"].removeprefix("s3://").partition("/")
    pages = (
        boto3.client("s3")
        .get_paginator("list_objects_v2")
        .paginate(Bucket=bucket, Prefix=f"{prefix}/", Delimiter="/")
    )
    folders = [each["Prefix"] for page in pages for each in page.get("CommonPrefixes", ())]
    if not folders:
        raise LookupError(f"no model in {event['models']}")
    newest = max(folders).rstrip("/")
    return {"model": f"s3://{bucket}/{newest}", "name": newest.rpartition("/")[2]}
