"""The data, the results and the machines of a processing job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from orchestration.checks import places
from orchestration.errors import Problem, near
from orchestration.refs import Expression
from orchestration.stages.processing import request
from orchestration.stages.processing.gate import Direction, Threshold
from orchestration.stages.training.cluster import Candidate, Machines
from orchestration.stages.values import Count, Gibibytes, Model, Name, Text, s3_problem

MOST: Final = 10
"""Inputs that a job may have, and outputs."""


class ProcessingInput(Model):
    """Data from S3 that lies in the container when the job begins."""

    uri: Text
    """A prefix, or a manifest where ``data_type`` says so."""
    path: str | None = Field(default=None, max_length=256)
    """The folder in the container, below ``/opt/ml/processing/``; by default
    ``/opt/ml/processing/input/<name>``."""
    data_type: Literal["S3Prefix", "ManifestFile"] = "S3Prefix"
    """The meaning of ``uri``: a prefix of all objects, or a file that lists them."""
    distribution: Literal["FullyReplicated", "ShardedByS3Key"] = "FullyReplicated"
    """All objects for every host, or a share of them for each."""

    def entry(self, name: str) -> dict[str, Any]:
        """Return the entry of ``ProcessingInputs``."""
        more = {"S3DataType": self.data_type, "S3DataDistributionType": self.distribution}
        return request.read(name, self.uri, self.path, **more)

    def place(self, name: str) -> str:
        """Return the folder in the container."""
        return f"{request.INPUT}/{name}" if self.path is None else self.path

    def problems(self, path: str) -> Iterator[Problem]:
        """Yield the input's own errors."""
        yield from s3_problem(f"{path}.uri", self.uri)
        if self.path is not None:
            yield from _below(f"{path}.path", self.path)


class ProcessingResult(Model):
    """A folder of the container that is uploaded to S3, an output of the stage by its name."""

    uri: Text | None = None
    """S3 URI; by default the run's own place in the workspace."""
    path: str | None = Field(default=None, max_length=256)
    """The folder in the container, below ``/opt/ml/processing/``; by default
    ``/opt/ml/processing/output/<name>``."""
    upload: Literal["end_of_job", "continuous"] = "end_of_job"
    """``continuous``: files are uploaded while the job runs, as they are written."""

    def place(self, name: str) -> str:
        """Return the folder in the container."""
        return f"{request.OUTPUT}/{name}" if self.path is None else self.path

    def entry(self, name: str, uri: Text) -> dict[str, Any]:
        """Return the entry of the job's ``Outputs``."""
        mode = "Continuous" if self.upload == "continuous" else "EndOfJob"
        return request.written(name, uri, self.place(name), mode)

    def problems(self, path: str) -> Iterator[Problem]:
        """Yield the result's own errors."""
        yield from s3_problem(f"{path}.uri", self.uri)
        if self.path is not None:
            yield from _below(f"{path}.path", self.path)


def _below(path: str, folder: str) -> Iterator[Problem]:
    parts = folder.split("/")
    if not folder.startswith(f"{request.ROOT}/") or ".." in parts or folder.endswith("/"):
        yield Problem(
            path, f"expected a folder below {request.ROOT}/, got {folder!r}: {request.INPUT}/data"
        )


def _from_text(value: object) -> object:
    if isinstance(value, str | Expression):
        return {"uri": value}
    if isinstance(value, dict) and len(value) == 1 and not value.keys() & _FIELDS:
        return {"uri": value}
    return value


_FIELDS = frozenset(ProcessingInput.model_fields)

Input: TypeAlias = Annotated[
    ProcessingInput,
    BeforeValidator(_from_text, json_schema_input_type=str | Expression[str] | ProcessingInput),
]
"""The source of a job's data; an S3 URI or a reference to one stands for an input of that."""


class ProcessingCluster(Model):
    """The machines of a processing job."""

    instance_type: Text
    """``ml.m5.4xlarge``."""
    instance_count: Count = 1
    """Machines of the job."""
    fallbacks: tuple[Machines, ...] = Field(default=(), max_length=8)
    """Tried in order where there is no capacity (or no quota) for what comes before: each a job of
    its own, started only after the one before it ended without machines."""
    volume_gib: Gibibytes = 30
    """Storage of each instance in GiB, where its type has no local storage of its own."""
    volume_kms_key: Text | None = None
    """Encrypts that storage."""

    def candidates(self) -> tuple[Candidate, ...]:
        """Return the machines to request one after the other."""
        first = Candidate(self.instance_type, self.instance_count)
        others = (
            Candidate(
                each.instance_type,
                self.instance_count if each.instance_count is None else each.instance_count,
            )
            for each in self.fallbacks
        )
        return (first, *others)

    def request(self, candidate: Candidate) -> dict[str, Any]:
        """Return the ``ClusterConfig`` of one of the candidates."""
        key = {} if self.volume_kms_key is None else {"VolumeKmsKeyId": self.volume_kms_key}
        return {
            "InstanceCount": candidate.instance_count,
            "InstanceType": candidate.instance_type,
            "VolumeSizeInGB": self.volume_gib,
            **key,
        }


class ReportThreshold(Threshold):
    """The number of a report that decides whether the pipeline goes on."""

    number: Name
    """One of the report's ``numbers``."""
    direction: Direction
    """``max``: the number must be at least the threshold; ``min``: at most."""


class Report(Model):
    """A JSON file that the job writes into one of its results: its values are outputs, too."""

    result: Name
    """Name of the result, among the job's ``results``."""
    file: str = Field(default="report.json", min_length=1, max_length=256)
    """Its path in the result."""
    numbers: dict[Name, str] = {}
    """Outputs of the stage by their places in the file: ``{accuracy: metrics.accuracy}``, or
    ``scores[?name=='f1'] | [0].value``."""
    texts: dict[Name, str] = {}
    """The same for text: ``{label: best.label}``."""
    threshold: ReportThreshold | None = None
    """A bound that one of the ``numbers`` must keep; by default none."""

    def problems(self, results: dict[str, ProcessingResult]) -> Iterator[Problem]:
        """Yield the report's own errors, with paths inside it."""
        if self.result not in results:
            yield Problem(
                "result", f"there is no result {self.result!r}{near(self.result, results)}"
            )
        if not self.numbers and not self.texts:
            yield Problem(
                "numbers", "name a number or a text to read: {accuracy: metrics.accuracy}"
            )
        for field, named in (("numbers", self.numbers), ("texts", self.texts)):
            for name, place in named.items():
                yield from places.problems(f"{field}.{name}", place)
        if self.threshold is not None and self.threshold.number not in self.numbers:
            number = self.threshold.number
            yield Problem(
                "threshold.number",
                f"the report has no number {number!r}{near(number, self.numbers)}",
            )
