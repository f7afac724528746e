"""The places, images, keys and networks that the request of a job names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from orchestration.expressions import Tree

Use: TypeAlias = Literal[
    "read", "write", "image", "volume key", "data key", "network", "files", "topic"
]

_WRITTEN: Final = ("S3Output", "OutputDataConfig", "TransformOutput")
_USES: Final[Mapping[str, Use]] = {
    "DestinationS3Uri": "write",
    "ErrorTopic": "topic",
    "FileSystemDataSource": "files",
    "Image": "image",
    "ImageUri": "image",
    "InputLocation": "read",
    "KmsKeyId": "data key",
    "ModelDataUrl": "read",
    "S3FailurePath": "write",
    "S3OutputPath": "write",
    # SageMaker's toolkits learn by these where their code is.
    "SAGEMAKER_SUBMIT_DIRECTORY": "read",
    "SuccessTopic": "topic",
    "TrainingImage": "image",
    "VolumeKmsKeyId": "volume key",
    "VpcConfig": "network",
    "sagemaker_submit_directory": "read",
}
"""By the name of a request's field."""


@dataclass(frozen=True, slots=True)
class Touched:
    """One use of one thing by a job."""

    use: Use
    value: Tree = None
    whole: bool = False
    """True if the value is a whole key; else it is the beginning of keys."""


def touched(tree: Tree, inside: str = "") -> Iterator[Touched]:
    """Yield each use of a thing by the job of a request to SageMaker."""
    if isinstance(tree, Mapping):
        if tree.get("S3DataType") == "S3Object":
            yield Touched("read", tree.get("S3Uri"), whole=True)
            return
        for name, value in tree.items():
            yield from _member(name, value, inside)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from touched(value, inside)


def _member(name: str, value: Tree, inside: str) -> Iterator[Touched]:
    if name == "S3Uri":
        if inside == "CheckpointConfig" or inside not in _WRITTEN:
            yield Touched("read", value)
        if inside == "CheckpointConfig" or inside in _WRITTEN:
            yield Touched("write", value)
    elif name == "KmsKeyId" and not inside:
        yield Touched("volume key", value)  # An endpoint's.
    elif name in _USES and not (_USES[name] == "image" and isinstance(value, Mapping)):
        yield Touched(_USES[name], value, whole=_USES[name] == "read")
    else:
        yield from touched(value, name)
