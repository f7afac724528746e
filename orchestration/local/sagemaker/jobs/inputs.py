"""The data of a job's channels on its hosts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestration.local.account import storage
from orchestration.local.account.protocol import ServiceError
from orchestration.local.account.storage import Caller, Location
from orchestration.local.sagemaker.jobs.mounts import Mounts
from orchestration.local.sagemaker.jobs.pipes import Pipe
from orchestration.local.sagemaker.outcomes import JobFailed


def reaches(channel: Mapping[str, Any], group: str) -> bool:
    """Return whether the hosts of an instance group get a channel."""
    groups = channel["DataSource"].get("S3DataSource", {}).get("InstanceGroupNames")
    return not groups or group in groups


def input_mode(channel: Mapping[str, Any], request: Mapping[str, Any]) -> str:
    """Return the input mode of a channel: its own, or that of the job."""
    if "FileSystemDataSource" in channel["DataSource"]:
        return "File"
    job: str = request["AlgorithmSpecification"].get("TrainingInputMode", "File")
    return str(channel.get("InputMode", job))


def bring_channel(
    channel: Mapping[str, Any],
    directory: Path,
    *,
    share: tuple[int, int],
    mounts: Mounts,
    caller: Caller,
) -> None:
    """Put a channel's data into a directory of a host; `share` is (host index, host count).

    FastFile mode is the same as File mode here: the files are there from the start.
    """
    source = channel["DataSource"]
    name = channel["ChannelName"]
    if "FileSystemDataSource" in source:
        directory.parent.mkdir(parents=True, exist_ok=True)
        mounted = mounts.directory(source["FileSystemDataSource"])
        directory.symlink_to(mounted, target_is_directory=True)
    elif "S3DataSource" in source:
        what = f"channel '{name}'"
        bring_objects(source["S3DataSource"], directory, share=share, what=what, caller=caller)
    else:
        raise JobFailed(f"ClientError: channel '{name}' has no data source")


def open_pipe(
    channel: Mapping[str, Any], directory: Path, *, share: tuple[int, int], caller: Caller
) -> Pipe:
    """Open a channel in Pipe mode, at `directory` with the number of the epoch."""
    name = channel["ChannelName"]
    source = channel["DataSource"].get("S3DataSource")
    if source is None:
        raise JobFailed(f"ClientError: channel '{name}' has no S3DataSource, which Pipe mode needs")
    sharded = source.get("S3DataDistributionType") == "ShardedByS3Key"
    index, count = share if sharded else (0, 1)
    prefix = Location.parse(source["S3Uri"], caller)
    try:
        if source.get("S3DataType") == "AugmentedManifestFile":
            objects = [prefix] if storage.exists(prefix) else []
        elif source.get("S3DataType") == "ManifestFile":
            objects = [location for location, _ in _manifest(prefix)]
        else:
            objects = [prefix.at(each.key) for each in storage.objects(prefix)]
        # What reads them is another thread, which cannot fail the job.
        objects = [place for place in objects if storage.exists(place)]
    except ServiceError as error:
        raise JobFailed(
            f"ClientError: Data download failed for channel '{name}': {error}"
        ) from error
    if not objects:
        raise JobFailed(_no_objects(source, f"channel '{name}'"))
    return Pipe(channel, objects[index::count], directory)


def bring_objects(
    source: Mapping[str, Any],
    directory: Path,
    *,
    share: tuple[int, int],
    what: str,
    caller: Caller,
) -> None:
    """Download the objects of an S3 data source."""
    prefix = Location.parse(source["S3Uri"], caller)
    sharded = source.get("S3DataDistributionType") == "ShardedByS3Key"
    share = share if sharded else (0, 1)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        if source.get("S3DataType", "S3Prefix") == "S3Prefix":
            count = storage.download(prefix, directory, share=share)
            count = count or len(storage.objects(prefix))
        else:
            count = _bring_manifest(prefix, directory, share, source["S3DataType"])
    except ServiceError as error:
        raise JobFailed(f"ClientError: Data download failed for {what}: {error}") from error
    if not count:
        raise JobFailed(_no_objects(source, what))


def _no_objects(source: Mapping[str, Any], what: str) -> str:
    return (
        f"ClientError: Data download failed: No S3 objects found under S3 URL "
        f'"{source["S3Uri"]}" given in input data source. Please ensure that the bucket '
        f"exists in the selected region ({what})"
    )


def _bring_manifest(manifest: Location, directory: Path, share: tuple[int, int], kind: str) -> int:
    if kind != "ManifestFile":
        raise JobFailed(f"ClientError: S3DataType {kind} needs InputMode Pipe")
    listed = _manifest(manifest)
    index, count = share
    for location, relative in listed[index::count]:
        storage.place(location, directory, relative)
    return len(listed)


def _manifest(manifest: Location) -> list[tuple[Location, str]]:
    """Return the objects of a manifest and their paths below the channel's directory.

    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_S3DataSource.html
    """
    try:
        first, *keys = json.loads(storage.read(manifest))
        root = Location.parse(first["prefix"], manifest.caller)
        # The prefix is prepended as text: it may end with a slash or in the middle of a name.
        return [(root.at(root.key + key), key.lstrip("/")) for key in keys]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JobFailed(
            f'ClientError: {manifest} is not a manifest: [{{"prefix": "s3://..."}}, "key", ...]'
        ) from error
