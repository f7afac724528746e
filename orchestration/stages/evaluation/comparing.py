"""Fields of an evaluation that is decided by a job of its own: slices, the champion, the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from orchestration.errors import Problem
from orchestration.stages.processing.gate import Direction
from orchestration.stages.registry.versions import role_problems
from orchestration.stages.values import Gibibytes, Model, Seconds, Text

RecordedFile: TypeAlias = Annotated[
    str, StringConstraints(max_length=200, pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$")
]
"""A file in every checkpoint, by its path there."""


class Bounds(Model):
    """The bounds that a number must keep."""

    minimum: float | None = None
    """The least that is good enough."""
    maximum: float | None = None
    """The most that is good enough."""

    @property
    def bounds(self) -> tuple[tuple[Literal["ge", "le"], str, float], ...]:
        """The comparisons that must hold, each with its words."""
        lower = () if self.minimum is None else (("ge", "at least", self.minimum),)
        upper = () if self.maximum is None else (("le", "at most", self.maximum),)
        return (*lower, *upper)

    def problems(self) -> Iterator[Problem]:
        """Yield the error of bounds that no number keeps."""
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            least, most = self.minimum, self.maximum
            yield Problem("minimum", f"is {least:g}, more than the maximum of {most:g}")


class EvaluationMetric(Bounds):
    """A metric beside the one that decides, and the bounds that it must keep."""

    path: str | None = Field(default=None, min_length=1, max_length=256)
    """Its place in the report: ``timing.p95_ms``, ``scores[0]`` or
    ``metrics[?name=='p95'] | [0].value``; by default ``metrics.<name>``, and ``<name>`` in
    a ``recorded`` file. Of a training job, the name of the metric there; by default its own."""


class EvaluationSlices(Bounds):
    """The deciding metric by slices of the data, each of which must keep the bounds."""

    path: str | None = Field(default=None, min_length=1, max_length=256)
    """The place in the report of an object with a number for each slice; by default
    ``slices.<name>``."""


class RecordedBest(Model):
    """The best checkpoints by a number that training has written into each of them."""

    count: int = Field(ge=1, le=500)
    """So many; the first ones of equals, and none whose number is NaN or infinite."""
    metric: str = Field(min_length=1, max_length=256)
    """The number's place in the file: ``val_loss``, or ``metrics.val_loss``."""
    direction: Direction
    """``max``: the largest numbers are the best; ``min``: the smallest."""
    file: RecordedFile = "metrics.json"
    """The JSON file in each checkpoint, at most 120 KiB; those that the runtime's ``Checkpoints``
    saves have ``metrics.json``."""


class CheckpointSelection(Model):
    """Some of the checkpoints, in the order of the last number in their names."""

    pattern: str | None = Field(default=None, max_length=100, pattern=r"^[A-Za-z0-9._=*-]+$")
    """Their names, ``*`` standing for any text: ``epoch-*0``."""
    every: int = Field(default=1, ge=1, le=1000)
    """One in so many, counted from the last one, which is always among them."""
    last: int | None = Field(default=None, ge=1, le=1000)
    """The most; of these so many, the last ones."""
    best: RecordedBest | None = None
    """Of these, the best by what training has written into each."""

    @property
    def expression(self) -> str:
        """The pattern as a regular expression over prefixes, its slashes in brackets."""
        name = "*" if self.pattern is None else self.pattern
        return f"(^|[/]){name.replace('.', '[.]').replace('*', '[^/]*')}[/]$"


class Champion(Model):
    """The model that is in use, which the best one must beat on the same data."""

    endpoint: Text | None = None
    """The endpoint that serves it; its first variant counts."""
    inference_component: Text | None = None
    """The inference component of the endpoint that serves it, where models share one."""
    package_group: Text | None = None
    """Instead: the group of the model registry whose latest approved version it is."""
    registry_role: Text | None = None
    """ARN of a role of the group's account that is assumed to read the group and its versions."""
    container: int = Field(default=1, ge=1, le=15, strict=True)
    """The position of its model's own container, behind those of a ``preprocessing``."""
    margin: float = Field(default=0, ge=0)
    """The improvement that is not enough: it must be larger."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """The confidence of the interval around the improvement, whose lower end must be above
    ``margin``, where the script writes the scores of single examples."""
    on_kept: Literal["stop", "go_on"] = "stop"
    """``stop``: where the champion is kept, what depends on the evaluation does not happen.
    ``go_on``: stages say themselves, in ``when``, for which ``outcome`` they are."""

    def problems(self) -> Iterator[Problem]:
        """Yield the error of a champion that is named twice, or not at all."""
        if (self.endpoint is None) == (self.package_group is None):
            yield Problem("endpoint", "is needed; or a package_group, not both")
        yield from role_problems(self.registry_role, self.package_group)
        if self.inference_component is not None and self.endpoint is None:
            yield Problem("inference_component", "is one of an endpoint; name that, too")
        if self.registry_role is not None and self.package_group is None:
            yield Problem("registry_role", "only a package_group is read; remove this")


class EvaluationReport(Model):
    """The job that decides, and writes ``report.html`` and ``report.json``."""

    image: Text | None = None
    """A container with ``python3`` (3.8 or later); by default that of the evaluation."""
    instance_type: Text = "ml.m5.large"
    """Machine of the job."""
    volume_gib: Gibibytes = 30
    """GiB of the machine's volume."""
    max_runtime_s: Seconds = Field(default=3600, le=5 * 86_400)
    """Seconds after which SageMaker stops the job."""
