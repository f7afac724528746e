"""The result of a script that ran alone: what it was given, how it ended and what it wrote."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from orchestration.local.account.records import RecordedCall

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
    evaluations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The content of each ``evaluation.json``, by the name of what was evaluated."""
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


def evaluations(calls: Iterable[RecordedCall], objects: Path) -> dict[str, Mapping[str, Any]]:
    """Return each ``evaluation.json`` that is an object, by the name of what was evaluated.

    ``objects`` is the folder with what the calls left in S3.
    """
    found = {}
    for call in calls:
        if call.operation != "CreateProcessingJob":
            continue
        request: Any = call.request
        given = request.get("ProcessingInputs", ())
        inputs = {each["InputName"]: each.get("S3Input") for each in given}
        written = request.get("ProcessingOutputConfig", {}).get("Outputs", ())
        # Others go to a feature group.
        for output in (each["S3Output"] for each in written if "S3Output" in each):
            place = output["S3Uri"]
            subject = inputs.get("checkpoint") or inputs.get("model") or output
            content = _object(objects / place.removeprefix("s3://") / "evaluation.json")
            if content is not None:
                found[subject["S3Uri"].rstrip("/").rpartition("/")[2]] = content
    return found


def _object(file: Path) -> Mapping[str, Any] | None:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
