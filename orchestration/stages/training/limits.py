"""Rules of CreateTrainingJob across a whole request, beyond the types of its fields.

They are asked of the request as it will be sent, ``extra_request`` included. Sources: the
documentation of CreateTrainingJob's fields (read November 2026),
https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingJob.html, and of warm
pools, https://docs.aws.amazon.com/sagemaker/latest/dg/train-warm-pools.html.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from orchestration.errors import Problem
from orchestration.refs import Expression, is_given

Request = Mapping[str, Any]

MOST_RUNTIME_S: Final = 28 * 86_400
MOST_KEEP_ALIVE_S: Final = 3600
MOST_CHARACTERS: Final = 2500
"""Of a hyperparameter's value."""

_FIELDS: Final = {
    "ResourceConfig.InstancePreferences": "cluster.preferences",
    "ResourceConfig.KeepAlivePeriodInSeconds": "cluster.keep_alive_s",
    "ResourceConfig.TrainingPlanArn": "cluster.training_plan",
    "ResourceConfig.VolumeKmsKeyId": "cluster.volume_kms_key",
    "StoppingCondition.MaxRuntimeInSeconds": "max_runtime_s",
    "StoppingCondition.MaxWaitTimeInSeconds": "spot.max_wait_s",
    "VpcConfig": "vpc",
}
"""The field of the stage that each field of a request comes from."""


def problems(request: Request, extra: Request) -> Iterator[Problem]:
    """Yield the errors of a request, in the terms of the stage that it comes from.

    ``extra`` is the part of it that the user gave as ``extra_request``.
    """
    for rule in _RULES:
        for path, message in rule(request):
            given = _at(extra, path) is not None
            yield Problem(f"extra_request.{path}" if given else _FIELDS.get(path, path), message)


def _at(tree: object, path: str) -> Any:
    for part in path.split("."):
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(part)
    return tree


def _entries(value: object) -> list[Mapping[str, Any]]:
    """The entries of a list, as far as they are known before the run."""
    listed = value if isinstance(value, list | tuple) else ()
    return [entry for entry in listed if isinstance(entry, Mapping)]


def _spot(request: Request) -> Iterator[tuple[str, str]]:
    wait = _at(request, "StoppingCondition.MaxWaitTimeInSeconds")
    run = _at(request, "StoppingCondition.MaxRuntimeInSeconds")
    where = "StoppingCondition.MaxWaitTimeInSeconds"
    if request.get("EnableManagedSpotTraining") is not True:
        if wait is not None:
            yield where, "has a meaning for spot capacity only; give spot: {max_wait_s: …}"
        return
    if wait is None:
        yield where, "is needed for spot capacity: seconds of waiting and training together"
    elif isinstance(wait, int) and isinstance(run, int) and wait < run:
        yield (
            where,
            f"{wait} is less than max_runtime_s ({run}); it counts waiting and training together",
        )
    for path, name in (
        ("ResourceConfig.InstancePreferences", "preferences"),
        ("ResourceConfig.TrainingPlanArn", "a training plan"),
        ("ResourceConfig.KeepAlivePeriodInSeconds", "a warm pool"),
    ):
        if is_given(_at(request, path)):
            yield path, f"{name} can't be had with spot capacity; leave out spot, or this"


def _warm_pool(request: Request) -> Iterator[tuple[str, str]]:
    path = "ResourceConfig.KeepAlivePeriodInSeconds"
    seconds = _at(request, path)
    if is_given(_at(request, path)) and is_given(_at(request, "ResourceConfig.InstanceGroups")):
        yield path, "a heterogeneous cluster can't be kept as a warm pool; leave it out"
    if isinstance(seconds, int) and seconds > MOST_KEEP_ALIVE_S:
        yield path, f"{seconds} is more than the {MOST_KEEP_ALIVE_S} s that a warm pool lives"


def _runtime(request: Request) -> Iterator[tuple[str, str]]:
    path = "StoppingCondition.MaxRuntimeInSeconds"
    seconds = _at(request, path)
    if isinstance(seconds, int) and seconds > MOST_RUNTIME_S:
        yield path, f"{seconds} is more than 28 days ({MOST_RUNTIME_S}), the longest a job may run"


def _network(request: Request) -> Iterator[tuple[str, str]]:
    mounted = [
        str(channel.get("ChannelName"))
        for channel in _channels(request)
        if _at(channel, "DataSource.FileSystemDataSource") is not None
    ]
    if mounted and not is_given(_at(request, "VpcConfig")):
        yield (
            "VpcConfig",
            f"is required to mount the file system of channel {', '.join(mounted)}; give vpc: "
            "{subnets: […], security_groups: […]}",
        )


def _pipe_only(request: Request) -> Iterator[tuple[str, str]]:
    job_mode = _at(request, "AlgorithmSpecification.TrainingInputMode")
    for channel in _channels(request):
        mode = channel.get("InputMode", job_mode)
        if mode == "Pipe":
            continue
        where = f"channels.{channel.get('ChannelName')}"
        way = f"only Pipe mode has that, and this channel is read in {mode} mode; add "
        if _at(channel, "DataSource.S3DataSource.S3DataType") == "AugmentedManifestFile":
            yield f"{where}.data_type", f"AugmentedManifestFile: {way}input_mode: Pipe"
        if channel.get("CompressionType") not in (None, "None"):
            yield f"{where}.compression", f"{way}input_mode: Pipe, or unpack in the script"
        if channel.get("RecordWrapperType") not in (None, "None"):
            yield f"{where}.record_wrapper", f"{way}input_mode: Pipe"


def _groups(request: Request) -> Iterator[tuple[str, str]]:
    groups = _at(request, "ResourceConfig.InstanceGroups")
    if isinstance(groups, Expression):
        return
    known = [group.get("InstanceGroupName") for group in _entries(groups)]
    for channel in _channels(request):
        where = f"channels.{channel.get('ChannelName')}.instance_groups"
        named = _at(channel, "DataSource.S3DataSource.InstanceGroupNames") or ()
        for name in named:
            if not known:
                yield where, "the cluster has no groups; leave it out"
                break
            if name not in known:
                yield where, f"there is no group {name!r}; there is {', '.join(map(str, known))}"


def _volume_key(request: Request) -> Iterator[tuple[str, str]]:
    from orchestration.catalog import instance

    path = "ResourceConfig.VolumeKmsKeyId"
    if _at(request, path) is None:
        return
    for name in _types(request):
        known = instance(name)
        if known is not None and known.local_storage_gb:
            yield (
                path,
                f"{name} has local storage, which its hardware encrypts with a key of its own and "
                "no other; leave it out",
            )


def _one_way(request: Request) -> Iterator[tuple[str, str]]:
    ways = ("InstanceType", "InstanceGroups", "InstancePreferences")
    resources = request.get("ResourceConfig") or {}
    first, *others = [way for way in ways if resources.get(way) is not None] or [""]
    for other in others:
        yield f"ResourceConfig.{other}", f"excludes {first}; give one of them"


def _placement(request: Request) -> Iterator[tuple[str, str]]:
    path = "ResourceConfig.InstancePlacementConfig"
    preferred = is_given(_at(request, "ResourceConfig.InstancePreferences"))
    if preferred and is_given(_at(request, path)):
        yield path, "can't be had with preferences"


def _types(request: Request) -> list[str]:
    resources = request.get("ResourceConfig") or {}
    listed = [resources]
    for several in ("InstanceGroups", "InstancePreferences"):
        listed += _entries(resources.get(several))
    found = [entry.get("InstanceType") for entry in listed]
    return [name for name in found if isinstance(name, str)]


def _channels(request: Request) -> list[Mapping[str, Any]]:
    return _entries(request.get("InputDataConfig"))


_RULES: Final[tuple[Callable[[Request], Iterator[tuple[str, str]]], ...]] = (
    _spot,
    _warm_pool,
    _runtime,
    _network,
    _pipe_only,
    _groups,
    _volume_key,
    _placement,
    _one_way,
)
