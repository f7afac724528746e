"""The result of a script that ran alone: what it was given, how it ended and what it wrote."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

_VARIABLE: Final = re.compile(r"^(SM_[A-Z0-9_]+)=(.*)$", re.MULTILINE)
_BASE: Final = re.compile(r"^SM_INPUT_DIR=(.+)/input$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenInput:
    """Data that the script was given."""

    name: str
    place: str
    """Its folder in the container."""
    files: int
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file that the script left in S3, or a member of a ``model.tar.gz``."""

    path: str
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptReport:
    """The result of one stage's script."""

    stage: str
    kind: str
    state: Literal["succeeded", "failed"]
    error: str | None
    cause: str | None
    duration_s: float
    inputs: tuple[GivenInput, ...]
    command: tuple[str, ...] = ()
    """The program that was started in the container, with its arguments."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the training toolkit set, with the container's paths."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    missing_metrics: tuple[str, ...] = ()
    """Metrics whose regular expressions matched nothing that was printed."""
    checkpoints: tuple[str, ...] = ()
    model: tuple[Written, ...] = ()
    """The files of ``model.tar.gz``."""
    results: tuple[Written, ...] = ()
    """Further files that it left."""
    evaluation: Mapping[str, Any] | None = None
    """The content of ``evaluation.json``."""
    answer: Any = None
    """The model's answer to the request."""
    folder: Path
    """The folder with logs and results."""
    log: tuple[str, ...] = ()
    """The last lines of the script that failed, with its traceback."""

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {**asdict(self), "folder": str(self.folder)}


def variables(log: str) -> dict[str, str]:
    """Return the variables that the training toolkit set, with the container's own paths."""
    base = _BASE.search(log)
    text = log.replace(base[1], "/opt/ml") if base else log
    return dict(sorted(_VARIABLE.findall(text)))


def members(archive: Path) -> Iterator[Written]:
    """Yield the files in a ``model.tar.gz``."""
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes()), mode="r:*") as files:
        for each in files:
            if each.isfile():
                yield Written(path=each.name, size=each.size)


def evaluation(files: Sequence[Path]) -> Mapping[str, Any] | None:
    """Return the content of the first ``evaluation.json`` that is an object."""
    for file in files:
        if file.name == "evaluation.json":
            try:
                content = json.loads(file.read_bytes())
            except ValueError:
                continue
            if isinstance(content, dict):
                return content
    return None
