"""Manifests: the objects of a job, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote_plus

from orchestration.local.account import roles, sharing, storage
from orchestration.local.account.protocol import JsonObject, ServiceError
from orchestration.local.account.rules import broken
from orchestration.local.account.storage import Location
from orchestration.local.batch.rules import FAILURES

SERVICE = "batchoperations.s3.amazonaws.com"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a manifest: an object, or one version of it."""

    bucket: str
    key: str
    version: str | None
    """``None``: the manifest names no versions; empty: the line lacks its own."""


def read(request: JsonObject) -> list[Line]:
    """Return the lines of a job's manifest; raise the failure of a job that can't read it."""
    place = request["Manifest"]["Location"]
    bucket, _, key = place["ObjectArn"].partition(":::")[2].partition("/")
    location = Location(bucket, key)
    if not roles.trusts(request["RoleArn"], SERVICE):
        raise broken(FAILURES, "manifests can be read")
    role = request["RoleArn"]
    etag = storage.etag(location)
    if etag is None:
        raise broken(FAILURES, "manifests exist")
    located = sharing.allows(bucket, "s3:GetBucketLocation", principal=role)
    if not (located and sharing.allows(bucket, "s3:GetObject", key, role)):
        raise broken(FAILURES, "manifests can be read")
    # As the guide's examples give it: without quotation marks.
    if place["ETag"] != etag.strip('"'):
        raise broken(FAILURES, "manifests are as described")
    return parsed(storage.read(location).decode(), request["Manifest"]["Spec"]["Fields"])


def parsed(text: str, fields: Sequence[str]) -> list[Line]:
    r"""Return the lines of a manifest, whose keys are URL-encoded.

    >>> parsed("data,a%20b.csv,v1\n", ["Bucket", "Key", "VersionId"])
    [Line(bucket='data', key='a b.csv', version='v1')]
    """
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    if not rows or any(len(row) < len(fields) for row in rows):
        raise broken(FAILURES, "manifests have lines", columns=len(fields))
    if len({row[0] for row in rows}) > 1:
        raise broken(FAILURES, "one source bucket")
    place = fields.index("VersionId") if "VersionId" in fields else None
    return [
        Line(row[0], unquote_plus(row[1]), None if place is None else row[place]) for row in rows
    ]


def failure(error: ServiceError) -> JsonObject:
    """Return a failure as a job's description has it."""
    return {"FailureCode": error.code, "FailureReason": error.message}
