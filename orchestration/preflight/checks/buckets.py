"""Buckets: they exist, in the region of the jobs, and can be reached."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding
from orchestration.preflight.reader import looked
from orchestration.preflight.requests import Request

_URI: Final = re.compile(r'"?s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?=["/]|$)')
_SOURCES: Final = ("https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html",)
_SAME_REGION: Final = (
    "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_S3DataSource.html"
)


def buckets(examination: Examination) -> Iterator[Finding]:
    """Yield the buckets that requests name and that runs can't use."""
    for bucket, (request, path) in named(examination).items():
        where = examination.where(request, *path)
        look = _bucket(examination, bucket, request, where)
        yield from looked("buckets", where, f"bucket {bucket}", look)


def named(examination: Examination) -> dict[str, tuple[Request, tuple[str | int, ...]]]:
    """Return the buckets that requests name, each with the first request and its place there."""
    found: dict[str, tuple[Request, tuple[str | int, ...]]] = {}
    for request in examination.requests:
        for bucket, path in _named(request.values, request.operation.service, ()):
            found.setdefault(bucket, (request, path))
    return found


def _bucket(
    examination: Examination, bucket: str, request: Request, where: str
) -> Iterator[Finding]:
    found = examination.reader.ask(
        "s3", "HeadBucket", absent=("404", "NoSuchBucket"), Bucket=bucket
    )
    if found is None:
        yield Finding(
            check="buckets",
            severity="fails",
            where=where,
            what=f"bucket {bucket} does not exist",
            why="S3 answers NoSuchBucket",
            when=request.calls,
            mend=f"create it in {examination.account.region}, or mend its name",
            sources=_SOURCES,
        )
        return
    region = _region(examination, bucket, found)
    if region != examination.account.region:
        yield Finding(
            check="buckets",
            severity="fails",
            where=where,
            what=f"bucket {bucket} is in {region}, and runs are in {examination.account.region}",
            why="SageMaker reads and writes buckets of its own region only, and S3 redirects other "
            "callers",
            when=request.calls,
            mend=f"use a bucket in {examination.account.region}, or run the pipeline in {region}",
            sources=(*_SOURCES, _SAME_REGION),
        )


def _region(examination: Examination, bucket: str, found: Mapping[str, Any]) -> str:
    if told := found.get("BucketRegion"):
        return str(told)
    answer = examination.reader.ask("s3", "GetBucketLocation", Bucket=bucket)
    # Buckets in us-east-1 have no location, and old ones in eu-west-1 are in "EU".
    location = answer.get("LocationConstraint") or "us-east-1"
    return "eu-west-1" if location == "EU" else str(location)


def _named(
    tree: Any, service: str, path: tuple[str | int, ...]
) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Yield every bucket that a request names, with its place."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            if name == "Bucket" and service == "s3" and isinstance(value, str):
                if _URI.fullmatch(f"s3://{value}"):
                    yield value, (*path, name)
            else:
                yield from _named(value, service, (*path, name))
    elif isinstance(tree, list | tuple):
        for number, value in enumerate(tree):
            yield from _named(value, service, (*path, number))
    elif isinstance(tree, str) and (match := _URI.match(tree)):
        yield match["bucket"], path
