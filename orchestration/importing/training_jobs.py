"""``CreateTrainingJob`` requests as pipelines of one training job.

What no field of the stage says exactly goes into ``extra_request`` as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.errors import PipelineError, Problem
from orchestration.graph import Call, all_steps
from orchestration.importing.imported import Imported, Note, differences
from orchestration.pipeline import Pipeline

_STAGE: Final = "train"
_OPERATION: Final = "CreateTrainingJob"
_OTHERWISE: Final = {
    "TrainingJobName": "each run's job has a name of its own, derived from the run",
    "Tags": "the pipeline adds tags that say what a job belongs to",
}
_FIELDS: Final[dict[str, dict[str, str]]] = {
    "AlgorithmSpecification": {
        "TrainingImage": "image",
        "AlgorithmName": "algorithm",
        "TrainingInputMode": "input_mode",
        "EnableSageMakerMetricsTimeSeries": "metrics_time_series",
        "ContainerEntrypoint": "entrypoint",
        "ContainerArguments": "arguments",
        "MetricDefinitions": "metrics",
    },
    "OutputDataConfig": {
        "S3OutputPath": "output.uri",
        "KmsKeyId": "output.kms_key",
        "CompressionType": "output.compression",
    },
    "ResourceConfig": {
        "InstanceType": "cluster.instance_type",
        "InstanceCount": "cluster.instance_count",
        "InstanceGroups": "cluster.groups",
        "VolumeSizeInGB": "cluster.volume_gib",
        "VolumeKmsKeyId": "cluster.volume_kms_key",
        "KeepAlivePeriodInSeconds": "cluster.keep_alive_s",
        "TrainingPlanArn": "cluster.training_plan",
    },
    "StoppingCondition": {
        "MaxRuntimeInSeconds": "max_runtime_s",
        "MaxWaitTimeInSeconds": "spot.max_wait_s",
        "MaxPendingTimeInSeconds": "cluster.max_pending_s",
    },
    "CheckpointConfig": {"S3Uri": "checkpoints.uri", "LocalPath": "checkpoints.local_path"},
    "VpcConfig": {"Subnets": "vpc.subnets", "SecurityGroupIds": "vpc.security_groups"},
    "RetryStrategy": {"MaximumRetryAttempts": "max_retries"},
}
_FLAGS: Final = {
    "EnableNetworkIsolation": "enable_network_isolation",
    "EnableInterContainerTrafficEncryption": "encrypt_inter_container_traffic",
}
_S3: Final = {
    "S3Uri": "uri",
    "S3DataType": "data_type",
    "S3DataDistributionType": "distribution",
    "AttributeNames": "attribute_names",
    "InstanceGroupNames": "instance_groups",
}
_CHANNEL: Final = {
    "ContentType": "content_type",
    "CompressionType": "compression",
    "RecordWrapperType": "record_wrapper",
    "InputMode": "input_mode",
}
_MOUNTS: Final = {"FSxLustre": "fsx_lustre", "EFS": "efs"}


def from_request(request: Mapping[str, Any], *, name: str | None = None) -> Imported:
    """Return the pipeline that sends a request, and what it does otherwise.

    Raises :class:`~orchestration.errors.PipelineError` where it is no request, or no pipeline can
    send it.
    """
    missing = [key for key in ("AlgorithmSpecification", "OutputDataConfig") if key not in request]
    if missing:
        message = f"expected a {_OPERATION} request, got an object without {' and '.join(missing)}"
        raise PipelineError([Problem("", message)])
    stage = stage_of(request)
    description: dict[str, Any] = {
        "name": name or _name(str(request.get("TrainingJobName", "imported"))),
        "workspace": _workspace(request),
    }
    if "RoleArn" in request:
        description["role"] = request["RoleArn"]
    description["stages"] = {_STAGE: stage}
    return Imported(description, tuple(_notes(request, _sent(description))))


def _name(job: str) -> str:
    """Return a pipeline's name made of a job's, without what made that one unique."""
    words = re.sub(r"(-\d{2,})+$", "", job).lower()
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:25].strip("-") or "imported"


def _workspace(request: Mapping[str, Any]) -> str:
    bucket = re.match(r"s3://[^/]+", str(request["OutputDataConfig"].get("S3OutputPath", "")))
    if bucket is None:
        path = "OutputDataConfig.S3OutputPath"
        raise PipelineError([Problem(path, "expected an S3 URI, s3://bucket/prefix")])
    return f"{bucket[0]}/pipelines"


def stage_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stage that sends a request, in whose values references may stand."""
    stage: dict[str, Any] = {"kind": "training_job"}
    extra: dict[str, Any] = {}
    for key, value in request.items():
        if key not in ("RoleArn", *_OTHERWISE):
            rest = _field(stage, key, value)
            if rest is not None:
                extra[key] = rest
    if tags := request.get("Tags"):
        stage["tags"] = {tag["Key"]: tag["Value"] for tag in tags}
    if extra:
        stage["extra_request"] = extra
    return stage


def _field(stage: dict[str, Any], key: str, value: Any) -> Any:
    """Write a field of the request; return what of it the stage has no field for."""
    match key, value:
        case _, Mapping() if key in _FIELDS:
            return _section(stage, _FIELDS[key], value)
        case _, True if key in _FLAGS:
            stage[_FLAGS[key]] = True
        case "EnableManagedSpotTraining", True:
            pass  # It comes with `spot`.
        case "Environment", Mapping() if value:
            stage["environment"] = dict(value)
        case "HyperParameters", Mapping():
            return _hyperparameters(stage, value)
        case "InputDataConfig", [_, *_] if (channels := _channels(value)) is not None:
            stage["channels"] = channels
        case _:
            return value
    return None


def _section(
    stage: dict[str, Any], fields: Mapping[str, str], value: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Write the fields of an object of the request; return those that the stage has none for."""
    rest: dict[str, Any] = {}
    for key, item in value.items():
        if key not in fields or item is False or item == []:
            rest[key] = item
            continue
        *around, last = fields[key].split(".")
        holder = stage
        for part in around:
            holder = holder.setdefault(part, {})
        holder[last] = _SHAPED[key](item) if key in _SHAPED else item
    if fields is _FIELDS["CheckpointConfig"] and "LocalPath" not in value:
        stage.setdefault("checkpoints", {})["local_path"] = None
    return rest or None


def _groups(groups: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    names = {
        "InstanceGroupName": "name",
        "InstanceType": "instance_type",
        "InstanceCount": "instance_count",
    }
    return [{names.get(key, key): value for key, value in group.items()} for group in groups]


def _metrics(definitions: list[Mapping[str, str]]) -> dict[str, str]:
    return {metric["Name"]: metric["Regex"] for metric in definitions}


_SHAPED: Final = {"InstanceGroups": _groups, "MetricDefinitions": _metrics}


def _hyperparameters(stage: dict[str, Any], value: Mapping[str, str]) -> dict[str, str] | None:
    """Write those of the script; return those of the training toolkit, which no stage may set."""
    own = {key: text for key, text in value.items() if not key.startswith("sagemaker_")}
    if own:
        stage["hyperparameters"] = own
    return {key: text for key, text in value.items() if key not in own} or None


def _channels(entries: Any) -> dict[str, Any] | None:
    """Return the channels; none where one of them has what no channel says."""
    channels: dict[str, Any] = {}
    for entry in entries:
        channel = _channel(entry)
        if channel is None or entry["ChannelName"] in channels:
            return None
        channels[entry["ChannelName"]] = channel
    return channels


def _channel(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    kinds = entry.get("DataSource", {})
    known = {"ChannelName", "DataSource", "ShuffleConfig", *_CHANNEL}
    if set(entry) - known or len(kinds) != 1:
        return None
    if "FileSystemDataSource" in kinds:
        return _mounted(kinds["FileSystemDataSource"]) if len(entry) == 2 else None
    source = kinds.get("S3DataSource", {})
    if "S3Uri" not in source or set(source) - set(_S3):
        return None
    channel = {_S3[key]: value for key, value in source.items()}
    channel |= {_CHANNEL[key]: value for key, value in entry.items() if key in _CHANNEL}
    if "ShuffleConfig" in entry:
        channel["shuffle_seed"] = entry["ShuffleConfig"].get("Seed")
    return channel


def _mounted(source: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = _MOUNTS.get(source.get("FileSystemType", ""))
    if kind is None or len(source) != 4:
        return None
    return {
        "kind": kind,
        "file_system_id": source["FileSystemId"],
        "path": source["DirectoryPath"],
        "access": source["FileSystemAccessMode"],
    }


def _sent(description: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the request that a pipeline sends."""
    graph = Pipeline.parse(description).lower().graph
    calls = (step for step in all_steps(graph) if isinstance(step, Call))
    (request,) = (call.operation.request for call in calls if call.operation.name == _OPERATION)
    return request


def _notes(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[Note]:
    for key, message in _OTHERWISE.items():
        if key in theirs:
            yield Note(key, message)
    yield from differences(_kept(theirs), _kept(ours))


def _kept(request: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in request.items() if key not in _OTHERWISE}
