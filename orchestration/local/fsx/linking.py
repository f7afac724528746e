"""The checks of a request to associate a file system with S3."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from orchestration.local.account import storage
from orchestration.local.account.protocol import JsonObject
from orchestration.local.account.storage import Location
from orchestration.local.fsx.associations import Association
from orchestration.local.fsx.file_system import FileSystem
from orchestration.local.fsx.rules import refusal

MOST_ASSOCIATIONS: Final = 8


def check(
    request: JsonObject, system: FileSystem, existing: Sequence[Association], region: str
) -> None:
    """Raise the service's error if a request breaks a rule; `region` is the file system's."""
    _check_system(system)
    if len(existing) >= MOST_ASSOCIATIONS:
        raise refusal("eight links", system=system.id)
    path = request.get("FileSystemPath", "/")
    if not path.startswith("/"):
        raise refusal("absolute paths", path=path)
    repository = request["DataRepositoryPath"]
    for other in existing:
        if overlap(path, other.path):
            raise refusal("paths do not overlap", path=path, other=other.path)
        theirs = other.request["DataRepositoryPath"]
        if overlap(repository.removeprefix("s3:/"), theirs.removeprefix("s3:/")):
            raise refusal("prefixes do not overlap", path=repository, other=theirs)
    _check_bucket(request, Location.parse(repository), region)


def overlap(one: str, other: str) -> bool:
    """Return whether one path is inside the other.

    >>> overlap("/ns1/", "/ns1/ns2"), overlap("/ns1", "/ns12")
    (True, False)
    """
    paths = PurePosixPath(one), PurePosixPath(other)
    return paths[0].is_relative_to(paths[1]) or paths[1].is_relative_to(paths[0])


def _check_bucket(request: JsonObject, repository: Location, region: str) -> None:
    # Buckets of other accounts and regions can be linked, if their policies admit this account.
    if not storage.lets_list(repository):
        raise refusal("bucket exists", path=repository)
    there = storage.bucket_region(repository.bucket)
    if request.get("S3", {}).get("AutoImportPolicy", {}).get("Events") and there != region:
        raise refusal("automatic imports in a region", path=repository, region=region)


def _check_system(system: FileSystem) -> None:
    if system.lifecycle not in ("AVAILABLE", "UPDATING"):
        raise refusal("links need AVAILABLE", system=system.id, lifecycle=system.lifecycle)
    if system.lustre["DeploymentType"] == "SCRATCH_1":
        raise refusal("links and SCRATCH_1")
    if system.version == "2.10":
        raise refusal("links need 2.12", version=system.version)
    if system.request.get("StorageType") == "INTELLIGENT_TIERING":
        raise refusal("links and tiering")
    if "ImportPath" in system.lustre:
        raise refusal("links and import paths")
