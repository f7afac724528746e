"""Measurements of one training, as a file beside its pipeline holds them."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from orchestration.errors import PipelineError, Problem
from orchestration.planning.model.configuration import (
    LayoutFamily,
    Offload,
    Optimizer,
    Precision,
    Recompute,
)
from orchestration.planning.model.shapes import ModelShape

Positive = Annotated[int, Field(ge=1)]
Above = Annotated[float, Field(gt=0, allow_inf_nan=False)]

SUFFIX: Final = ".measurements.json"


class _Record(BaseModel):
    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="forbid", protected_namespaces=()
    )


class MeasuredLayout(_Record):
    """The layout of a measured training, by its degrees."""

    family: LayoutFamily
    zero: Annotated[int, Field(ge=0, le=3)] = 0
    shard: Positive | None = None
    tensor: Positive = 1
    pipeline: Positive = 1
    context: Positive = 1
    expert: Positive = 1
    devices_per_instance: Positive | None = None


class Measurement(_Record):
    """One configuration of one training, with its step time, its peak memory, or its failure."""

    date: datetime.date
    source: Literal["probe", "run"]
    job: str
    """Name of the training job that was measured."""
    region: str | None = None
    image: str | None = None
    """Container of the job."""
    model: str
    """Digest of the model's shape, as `model_digest` makes it."""
    instance_type: str
    instance_count: Positive
    layout: MeasuredLayout
    sequence: Positive
    global_batch: Positive
    micro_batch: Positive
    recompute: Recompute = "none"
    offload: Offload = "none"
    precision: Precision
    optimizer: Optimizer
    step_time_s: Above | None = None
    """Median seconds of one optimizer step."""
    peak_memory_gib: Above | None = None
    """Memory of the fullest device as ``nvidia-smi`` shows it."""
    out_of_memory: bool = False
    """The devices' memory was not enough."""
    billable_s: Annotated[int, Field(ge=0)] | None = None
    """Seconds that the job was billed for, of each instance."""

    @model_validator(mode="after")
    def _says_something(self) -> Measurement:
        if self.step_time_s is None and self.peak_memory_gib is None and not self.out_of_memory:
            raise ValueError("give step_time_s, peak_memory_gib or out_of_memory")
        return self


class _File(_Record):
    version: Literal[1] = 1
    measurements: tuple[Measurement, ...]


@cache
def model_digest(model: ModelShape) -> str:
    """Return 16 hexadecimal digits that name a model's shape, whatever the model is called."""
    shape = asdict(model)
    if model.kind != "custom":  # of which the name is all that tells one from another
        del shape["name"]
    text = json.dumps(shape, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def beside(path: Path) -> Path:
    """Return the measurements file of a pipeline: ``chat.measurements.json``, of ``chat.yaml``."""
    return path.with_suffix(SUFFIX)


def read(path: Path) -> tuple[Measurement, ...]:
    """Read a file of measurements.

    Raises:
        PipelineError: with everything that is wrong with it.
    """
    try:
        return _File.model_validate_json(path.read_bytes()).measurements
    except OSError as error:
        raise PipelineError([Problem(path.name, f"can't be read: {error.strerror}")]) from error
    except ValidationError as error:
        problems = [
            Problem(".".join([path.name, *map(str, each["loc"])]), each["msg"])
            for each in error.errors(include_url=False)
        ]
        raise PipelineError(problems) from error


def text(measurements: Iterable[Measurement]) -> str:
    """Return the content of a file with these measurements, of each job the last."""
    of_jobs = {each.job: each for each in measurements}
    every = sorted(of_jobs.values(), key=lambda each: (each.date, each.job))
    return _File(measurements=tuple(every)).model_dump_json(indent=1, exclude_none=True) + "\n"
