"""The architecture and the CUDA of images, from their manifests and configurations in ECR."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestration.preflight.reader import Reader

_TYPES: Final = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.index.v1+json",
)
_CUDA: Final = "CUDA_VERSION"
"""Set by the images of NVIDIA, which most others are built from:
https://gitlab.com/nvidia/container-images/cuda"""
_LABEL: Final = "com.nvidia.cuda.version"
_VERSION: Final = re.compile(r"\d+\.\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """An image for one architecture."""

    architecture: str | None
    """``amd64`` or ``arm64``; ``None``: unknown."""
    cuda: str | None
    """``12.4``; ``None`` where the image does not say."""


def manifest(reader: Reader, image: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the manifest of an image, nothing if there is none, ``None`` without a repository."""
    answer = reader.ask(
        "ecr",
        "BatchGetImage",
        absent=("RepositoryNotFoundException",),
        acceptedMediaTypes=list(_TYPES),
        **image,
    )
    if answer is None:
        return None
    images = answer.get("images")
    return json.loads(images[0]["imageManifest"]) if images else {}


def builds(reader: Reader, image: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Build]:
    """Yield the builds of an image: one, or one for each of the architectures in its index."""
    if "manifests" not in found:
        yield _build(reader, image, found, None)
        return
    for each in found["manifests"]:
        architecture = each.get("platform", {}).get("architecture")
        if architecture in (None, "unknown"):
            continue  # An attestation about another one.
        own = {**image, "imageIds": [{"imageDigest": each["digest"]}]}
        yield _build(reader, image, manifest(reader, own) or {}, str(architecture))


def _build(
    reader: Reader, image: Mapping[str, Any], found: Mapping[str, Any], architecture: str | None
) -> Build:
    digest = found.get("config", {}).get("digest")
    if digest is None:
        return Build(architecture=architecture, cuda=None)
    answer = reader.ask(
        "ecr",
        "GetDownloadUrlForLayer",
        registryId=image["registryId"],
        repositoryName=image["repositoryName"],
        layerDigest=digest,
    )
    config = json.loads(reader.download("ecr:GetDownloadUrlForLayer", answer["downloadUrl"]))
    own = config.get("config") or {}
    variables = dict(each.partition("=")[::2] for each in own.get("Env") or ())
    told = variables.get(_CUDA) or (own.get("Labels") or {}).get(_LABEL) or ""
    version = _VERSION.match(told)
    return Build(
        architecture=architecture or config.get("architecture"),
        cuda=None if version is None else version[0],
    )
