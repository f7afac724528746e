"""Brings the data of a job's channels to its hosts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.local import storage
from orchestration.local.protocol import ServiceError
from orchestration.local.sagemaker.jobs import JobFailed
from orchestration.local.storage import Location

if TYPE_CHECKING:
    from orchestration.local.wiring import Account


def bring_channel(
    account: Account, channel: Mapping[str, Any], directory: Path, *, share: tuple[int, int]
) -> None:
    """Put one channel's data at a directory of a host; `share` is (host index, host count)."""
    source = channel["DataSource"]
    if "FileSystemDataSource" in source:
        link_file_system(account, source["FileSystemDataSource"], directory)
    elif "S3DataSource" in source:
        name = channel["ChannelName"]
        bring_objects(source["S3DataSource"], directory, share=share, what=f"channel '{name}'")
    else:
        raise JobFailed(f"ClientError: channel '{channel['ChannelName']}' has no source of data")


def bring_objects(
    source: Mapping[str, Any], directory: Path, *, share: tuple[int, int], what: str
) -> None:
    """Download what an S3 data source names."""
    prefix = Location.parse(source["S3Uri"])
    sharded = source.get("S3DataDistributionType") == "ShardedByS3Key"
    share = share if sharded else (0, 1)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        if source.get("S3DataType", "S3Prefix") == "S3Prefix":
            found = storage.download(prefix, directory, share=share)
            found = found or len(storage.objects(prefix))
        else:
            found = _bring_manifest(prefix, directory, share, source["S3DataType"])
    except ServiceError as error:
        raise JobFailed(f"ClientError: Data download failed for {what}: {error}") from error
    if not found:
        raise JobFailed(
            f"ClientError: Data download failed: No S3 objects found under S3 URL "
            f'"{source["S3Uri"]}" given in input data source. Please ensure that the bucket '
            f"exists in the selected region ({what})"
        )


def _bring_manifest(manifest: Location, directory: Path, share: tuple[int, int], kind: str) -> int:
    if kind != "ManifestFile":
        raise JobFailed(f"ClientError: the embedded AWS does not simulate S3DataType {kind}")
    prefix, *keys = json.loads(storage.read(manifest))
    root = Location.parse(prefix["prefix"])
    index, count = share
    chosen = keys[index::count]
    for key in chosen:
        target = directory / key
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(storage.read(Location(root.bucket, root.key + key)))
    return len(keys)


def link_file_system(account: Account, source: Mapping[str, Any], directory: Path) -> None:
    """Mount a directory of a Lustre file system: here a symbolic link."""
    if source["FileSystemType"] != "FSxLustre":
        raise JobFailed("ClientError: the embedded AWS simulates FSxLustre file systems only")
    try:
        mounted = account.file_systems.mounted(source["FileSystemId"], source["DirectoryPath"])
    except ServiceError as error:
        raise JobFailed(f"ClientError: Unable to mount file system: {error.message}") from error
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.symlink_to(mounted, target_is_directory=True)
