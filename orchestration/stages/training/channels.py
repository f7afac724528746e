"""Channels: a training job's data from S3, FSx for Lustre or EFS.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_Channel.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from orchestration.errors import Problem
from orchestration.expressions import field, join
from orchestration.refs import Expression, Ref
from orchestration.stages.values import Model, Text, s3_problem

InputMode: TypeAlias = Literal["File", "FastFile", "Pipe"]
"""The way the container sees data of S3: copied to its disk, as files that are read when they are
opened, or as named pipes."""


class S3Channel(Model):
    """A channel read from S3."""

    kind: Literal["s3"] = "s3"
    uri: Text
    """A prefix, or a manifest where ``data_type`` says so."""
    data_type: Literal["S3Prefix", "ManifestFile", "AugmentedManifestFile"] = "S3Prefix"
    """The meaning of ``uri``: a prefix of all objects, or a file that lists them."""
    distribution: Literal["FullyReplicated", "ShardedByS3Key"] = "FullyReplicated"
    """All objects for every host, or a share of them for each."""
    input_mode: InputMode | None = None
    """``None``: as the job does (File)."""
    content_type: str | None = None
    """Content type that the algorithm is told, ``text/csv``."""
    compression: Literal["None", "Gzip"] | None = None
    """Of the objects, unpacked on the way; only in Pipe mode."""
    record_wrapper: Literal["None", "RecordIO"] | None = None
    """RecordIO wraps each object in a record; only in Pipe mode."""
    attribute_names: tuple[str, ...] = Field(default=(), max_length=16)
    """Attributes of an augmented manifest that are read, in this order."""
    shuffle_seed: int | None = None
    """Shuffles the objects (in Pipe mode anew for every epoch), with this seed."""
    instance_groups: tuple[str, ...] = Field(default=(), max_length=5)
    """The groups of a heterogeneous cluster that get this data; empty: all of them."""

    def request(self) -> dict[str, Any]:
        """One entry of ``InputDataConfig``, without its name."""
        source: dict[str, Any] = {
            "S3DataType": self.data_type,
            "S3Uri": self.uri,
            "S3DataDistributionType": self.distribution,
        }
        if self.attribute_names:
            source["AttributeNames"] = list(self.attribute_names)
        if self.instance_groups:
            source["InstanceGroupNames"] = list(self.instance_groups)
        entry: dict[str, Any] = {"DataSource": {"S3DataSource": source}}
        optional = {
            "ContentType": self.content_type,
            "CompressionType": self.compression,
            "RecordWrapperType": self.record_wrapper,
            "InputMode": self.input_mode,
        }
        entry |= {key: value for key, value in optional.items() if value is not None}
        if self.shuffle_seed is not None:
            entry["ShuffleConfig"] = {"Seed": self.shuffle_seed}
        return entry

    def problems(self, path: str) -> Iterator[Problem]:
        """Yield the channel's own errors."""
        yield from s3_problem(f"{path}.uri", self.uri)
        augmented = self.data_type == "AugmentedManifestFile"
        if augmented and not self.attribute_names:
            yield Problem(
                f"{path}.attribute_names",
                "an augmented manifest needs the attributes to read: [source-ref, label]",
            )
        if self.attribute_names and not augmented:
            yield Problem(
                f"{path}.attribute_names", "goes with data_type: AugmentedManifestFile only"
            )


_MOUNTED = ("file_system", "file_system_root")
_BELOW_STAGED = r"(/[^/\x00]+)*"


class FileSystemChannel(Model):
    """A channel mounted from FSx for Lustre; the job then needs a :class:`Vpc`."""

    kind: Literal["fsx_lustre"] = "fsx_lustre"
    file_system: Expression[Any] | None = None
    """``staged.outputs.file_system``; in YAML ``{ref: staging.file_system}``."""
    file_system_id: Text | None = None
    """Instead: a file system that lives longer than the run, by its id; ``path`` then begins with
    its mount name: ``/fsx/train``."""
    path: str = Field(default="", pattern=r"^(/[^\x00]*)?$", max_length=4096)
    """A directory below the staged data: ``/train``."""
    access: Literal["ro", "rw"] = "ro"
    """``rw``: the script may write to it."""
    content_type: str | None = None
    """Content type that the algorithm is told, ``text/csv``."""

    def request(self) -> dict[str, Any]:
        """One entry of ``InputDataConfig``, without its name."""
        if self.file_system is None:
            return _mounted(self, self.file_system_id, "FSxLustre", self.path)
        directory = field(self.file_system, "directory")
        whole: Any = join(directory, self.path) if self.path else directory  # type: ignore[arg-type]  # the field of an expression is one
        return _mounted(self, field(self.file_system, "id"), "FSxLustre", whole)

    def problems(self, path: str) -> Iterator[Problem]:
        """Yield the channel's own errors."""
        if (self.file_system is None) == (self.file_system_id is None):
            yield Problem(path, "takes file_system ({ref: <stage>.file_system}), or file_system_id")
        system = self.file_system
        if system is not None and not (isinstance(system, Ref) and system.output in _MOUNTED):
            yield Problem(
                f"{path}.file_system",
                "takes the file system of a staging stage: {ref: <stage>.file_system}",
            )
        if self.file_system_id is not None and not self.path:
            yield Problem(
                f"{path}.path",
                "is needed with file_system_id: the mount name and a directory, /fsx/train",
            )
        # Exports and cleaning up compare these paths with those of other channels.
        if self.file_system is not None and not re.fullmatch(_BELOW_STAGED, self.path):
            yield Problem(
                f"{path}.path",
                f"expected a directory below the staged data, like /train, got {self.path!r}",
            )


def writable(value: object, stage: str, mount_path: str) -> Iterator[str]:
    """Yield the directories of a stage's file system that channels anywhere in a value may change.

    ``mount_path`` is the directory of the stage's ``file_system``.
    """
    if isinstance(value, FileSystemChannel):
        system = value.file_system
        if isinstance(system, Ref) and system.stage == stage and value.access == "rw":
            root = mount_path if system.output == "file_system" else ""
            yield f"{root}{value.path}" or "/"
    elif isinstance(value, Model):
        for name in type(value).model_fields:
            yield from writable(getattr(value, name), stage, mount_path)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from writable(item, stage, mount_path)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from writable(item, stage, mount_path)


class EfsChannel(Model):
    """A channel mounted from Amazon EFS; the job then needs a :class:`Vpc`."""

    kind: Literal["efs"] = "efs"
    file_system_id: Text
    """Id of the EFS file system: ``fs-0123456789abcdef0``."""
    path: str = Field(pattern=r"^/[^\x00]*$", max_length=4096)
    """A directory of the file system: ``/data``."""
    access: Literal["ro", "rw"] = "ro"
    """``rw``: the script may write to it."""
    content_type: str | None = None
    """Content type that the algorithm is told, ``text/csv``."""

    def request(self) -> dict[str, Any]:
        """One entry of ``InputDataConfig``, without its name."""
        return _mounted(self, self.file_system_id, "EFS", self.path)

    def problems(self, path: str) -> Iterator[Problem]:  # noqa: ARG002 - the shape all channels share
        """Yield the channel's own errors."""
        yield from ()


def _mounted(
    channel: FileSystemChannel | EfsChannel, system: object, kind: str, directory: object
) -> dict[str, Any]:
    source = {
        "FileSystemId": system,
        "FileSystemType": kind,
        "DirectoryPath": directory,
        "FileSystemAccessMode": channel.access,
    }
    entry: dict[str, Any] = {"DataSource": {"FileSystemDataSource": source}}
    return entry | ({"ContentType": channel.content_type} if channel.content_type else {})


_NO_REFERENCE = frozenset(FileSystemChannel.model_fields)
"""Keys of which one alone makes no reference: the kind is missing."""


def _channel(value: object) -> object:
    if isinstance(value, str | Expression):
        return {"kind": "s3", "uri": value}
    if isinstance(value, dict) and "kind" not in value and "uri" in value:
        return {"kind": "s3", **value}
    if isinstance(value, dict) and len(value) == 1 and not value.keys() & _NO_REFERENCE:
        return {"kind": "s3", "uri": value}
    return value


_Whole: TypeAlias = Annotated[
    S3Channel | FileSystemChannel | EfsChannel, Field(discriminator="kind")
]

Channel: TypeAlias = Annotated[
    _Whole,
    BeforeValidator(_channel, json_schema_input_type=str | Expression[str] | _Whole),
]
"""The source of a channel's data; an S3 URI or a reference to one stands for a plain S3
channel."""
