"""Checks of a training job's channels."""

from __future__ import annotations

from collections.abc import Callable

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, ServiceError
from orchestration.local.sagemaker.checks.surroundings import check_objects, repeated
from orchestration.local.sagemaker.rules import refusal

SubnetsOf = Callable[[str], list[str]]
"""A function of a Lustre file system's id; it raises `ServiceError` for an unknown one."""


def check_channels(account: Account, request: JsonObject, subnets_of: SubnetsOf) -> None:
    """Refuse channels that break a rule of SageMaker."""
    channels = request.get("InputDataConfig", [])
    for channel in repeated(channel["ChannelName"] for channel in channels):
        raise refusal("channels once", channel=channel)
    _check_groups(request, channels)
    for channel in channels:
        _check_mode(channel, request)
        source = channel["DataSource"].get("S3DataSource")
        if source is not None:
            check_objects(account, source["S3Uri"], request["RoleArn"])
        _check_mount(account, channel, request, subnets_of)


def _check_groups(request: JsonObject, channels: list[JsonObject]) -> None:
    """Refuse instance groups of channels that do not exist, or that only some channels have."""
    groups = {group["InstanceGroupName"] for group in _groups(request)}
    assigned = [channel["ChannelName"] for channel in channels if _named(channel)]
    others = [channel["ChannelName"] for channel in channels if not _named(channel)]
    for channel in channels:
        for name in sorted({*_named(channel)} - groups):
            raise refusal("channels name groups", channel=channel["ChannelName"], name=name)
    if assigned and others:
        raise refusal(
            "all channels name groups", assigned=", ".join(assigned), others=", ".join(others)
        )


def _groups(request: JsonObject) -> list[JsonObject]:
    groups: list[JsonObject] = request["ResourceConfig"].get("InstanceGroups", [])
    return groups


def _named(channel: JsonObject) -> list[str]:
    source = channel["DataSource"].get("S3DataSource", {})
    return list(source.get("InstanceGroupNames", []))


def _check_mode(channel: JsonObject, request: JsonObject) -> None:
    job = request["AlgorithmSpecification"].get("TrainingInputMode", "File")
    if channel.get("InputMode", job) == "Pipe":
        return
    source = channel["DataSource"].get("S3DataSource", {})
    if source.get("S3DataType") == "AugmentedManifestFile":
        raise refusal("augmented manifests are piped", channel=channel["ChannelName"])
    if channel.get("CompressionType", "None") != "None":
        raise refusal("compressed data is piped", channel=channel["ChannelName"])


def _check_mount(
    account: Account, channel: JsonObject, request: JsonObject, subnets_of: SubnetsOf
) -> None:
    source = channel["DataSource"].get("FileSystemDataSource")
    if source is None:
        return
    if not request.get("VpcConfig"):
        raise refusal("mounts need a VPC")
    try:
        subnets = subnets_of(source["FileSystemId"]) if source["FileSystemType"] != "EFS" else []
    except ServiceError:
        # The job fails: it cannot mount what does not exist.
        return
    zones = {account.networks.zone(subnet) for subnet in subnets} - {None}
    own = {account.networks.zone(subnet) for subnet in request["VpcConfig"]["Subnets"]}
    if zones and not zones & own:
        raise refusal(
            "zone of the file system",
            system=source["FileSystemId"],
            zone=", ".join(sorted(str(zone) for zone in zones)),
        )
