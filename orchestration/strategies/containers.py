"""The software of AWS's training containers that decides which accelerators they can drive.

A row of ``containers.csv`` is the first SageMaker training container of a framework with a version
of CUDA (or of the Neuron SDK); later containers have it until the next row. Source: the tags in
`aws/deep-learning-containers` (release files, their history, and ``docs/src/data``), read on
2026-11-22 at e0ecedea6a of 2026-08-21.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache

_CUDA = re.compile(r"(?:^|[-_:])cu(\d{2})(\d)(?=$|[-_.])")
_NEURON = re.compile(r"(?:^|[-_:])sdk(\d+\.\d+\.\d+)(?=$|[-_])")


@dataclass(frozen=True, slots=True)
class Software:
    """Software of a container that drives accelerators; ``None``: unknown."""

    cuda: str | None = None
    neuron: str | None = None
    """Version of the Neuron SDK."""


@dataclass(frozen=True, slots=True)
class _Container:
    framework: str
    version: str
    software: Software


@cache
def _containers() -> tuple[_Container, ...]:
    from importlib import resources

    text = resources.files(__package__).joinpath("containers.csv").read_text(encoding="utf-8")
    return tuple(
        _Container(
            row["framework"], row["version"], Software(row["cuda"] or None, row["neuron"] or None)
        )
        for row in csv.DictReader(text.splitlines())
    )


def software(framework: str, version: str, *, neuron: bool = False) -> Software:
    """Return the software in AWS's container of a framework's version.

    >>> software("pytorch", "2.5.1").cuda
    '12.4'
    """
    name = f"{framework}-neuron" if neuron else framework
    first: Software | None = None
    latest = Software()
    for container in _containers():
        if container.framework == name:
            first = first or container.software
            if _parts(container.version) <= _parts(version):
                latest = container.software
    # Older containers have older software than the first that is known.
    return latest if latest != Software() else first or Software()


def container_of_image(image: str) -> Software:
    """Return the software that an image's tag names.

    >>> container_of_image("pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-sagemaker").cuda
    '12.9'
    """
    cuda, neuron = _CUDA.search(image), _NEURON.search(image)
    return Software(
        None if cuda is None else f"{int(cuda[1])}.{cuda[2]}",
        None if neuron is None else neuron[1],
    )


def versions(framework: str) -> tuple[str, ...]:
    """Return the versions of a framework whose containers were the first with some software."""
    return tuple(each.version for each in _containers() if each.framework == framework)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
