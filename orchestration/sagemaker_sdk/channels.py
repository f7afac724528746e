"""The SDK's inputs as channels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestration.sagemaker_sdk.findings import Findings
from orchestration.stages.training.channels import EfsChannel, FileSystemChannel, S3Channel

Made = S3Channel | FileSystemChannel | EfsChannel

_S3 = {
    "S3Uri": "uri",
    "S3DataType": "data_type",
    "S3DataDistributionType": "distribution",
    "AttributeNames": "attribute_names",
    "InstanceGroupNames": "instance_groups",
}
_CHANNEL = {
    "InputMode": "input_mode",
    "ContentType": "content_type",
    "CompressionType": "compression",
    "RecordWrapperType": "record_wrapper",
}
_MOUNTED = {
    "FileSystemId": "file_system_id",
    "DirectoryPath": "path",
    "FileSystemAccessMode": "access",
}


def from_inputs(inputs: object, findings: Findings) -> dict[str, Made]:
    """Convert the inputs of an estimator's ``fit()`` to channels."""
    made = {}
    for name, value in _named(inputs, findings):
        path = f"inputs[{name!r}]"
        if name in made:
            findings.add(path, "is the name of two inputs; rename one")
        channel = _input(value, path, findings)
        if channel is not None:
            made[name] = channel
    return made


def from_request(config: Mapping[str, Any], path: str, findings: Findings) -> Made | None:
    """Convert a channel in the form of ``CreateTrainingJob``, without its name."""
    rest = dict(config)
    rest.pop("ChannelName", None)
    source = dict(rest.pop("DataSource", {}))
    mounted = source.pop("FileSystemDataSource", None)
    s3 = source.pop("S3DataSource", None)
    _unknown(source, path, findings)
    if mounted is not None:
        return _file_system(dict(mounted), rest, path, findings)
    if s3 is None:
        findings.add(path, "names neither a place in S3 nor a file system for its data")
        return None
    return _s3(dict(s3), rest, path, findings)


def _s3(
    s3: dict[str, Any], rest: dict[str, Any], path: str, findings: Findings
) -> S3Channel | None:
    fields = {ours: s3.pop(theirs) for theirs, ours in _S3.items() if theirs in s3}
    fields |= {ours: rest.pop(theirs) for theirs, ours in _CHANNEL.items() if theirs in rest}
    if "ShuffleConfig" in rest:
        fields["shuffle_seed"] = rest.pop("ShuffleConfig")["Seed"]
    _unknown({**s3, **rest}, path, findings)
    return findings.made(path, lambda: S3Channel(**fields))


def _file_system(
    mounted: dict[str, Any], rest: dict[str, Any], path: str, findings: Findings
) -> FileSystemChannel | EfsChannel | None:
    fields = {ours: mounted.pop(theirs) for theirs, ours in _MOUNTED.items() if theirs in mounted}
    if "ContentType" in rest:
        fields["content_type"] = rest.pop("ContentType")
    kind = mounted.pop("FileSystemType", None)
    _unknown({**mounted, **rest}, path, findings)
    if kind == "EFS":
        return findings.made(path, lambda: EfsChannel(**fields))
    if kind == "FSxLustre":
        return findings.made(path, lambda: FileSystemChannel(**fields))
    findings.add(path, f"is on a file system of unknown type {kind!r}; use FSxLustre or EFS")
    return None


def _unknown(rest: Mapping[str, Any], path: str, findings: Findings) -> None:
    for name, value in rest.items():
        if value is not None:
            findings.add(f"{path}.{name}", f"is {value!r}, which a channel here has no field for")


def _named(inputs: Any, findings: Findings) -> Iterator[tuple[str, object]]:
    """List each input with its channel's name, named like the SDK names them."""
    if inputs is None:
        return
    records = inputs if isinstance(inputs, list) else [inputs]
    if isinstance(inputs, Mapping):
        yield from ((str(name), value) for name, value in inputs.items())
    elif all(hasattr(record, "data_channel") for record in records) and records:
        # RecordSet and FileSystemRecordSet have the name of their channel.
        for record in records:
            yield from record.data_channel().items()
    elif isinstance(inputs, str) or hasattr(inputs, "config"):
        yield "training", inputs
    else:
        findings.add(
            "inputs",
            f"is a {type(inputs).__name__}; give an S3 URI, a TrainingInput, a FileSystemInput, "
            "or a mapping from channels to these",
        )


def _input(value: object, path: str, findings: Findings) -> Made | None:
    if isinstance(value, str):
        if value.startswith("s3://"):
            return findings.made(path, lambda: S3Channel(uri=value))
        findings.add(path, f"{value!r} is on this machine (local mode); upload it, and give s3://…")
        return None
    config = getattr(value, "config", None)
    if not isinstance(config, Mapping):
        findings.add(
            path,
            f"is a {type(value).__name__}; give an S3 URI, a TrainingInput or a FileSystemInput",
        )
        return None
    if "FileDataSource" in config.get("DataSource", {}):
        findings.add(path, "is on this machine (local mode); upload it, and give s3://…")
        return None
    return from_request(config, path, findings)
