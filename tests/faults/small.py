"""Small pipelines for the kinds of jobs that the flagship does not start, and their cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from orchestration import (
    BatchTransform,
    DataStaging,
    Pipeline,
    ProcessingJob,
    S3Destination,
    Source,
    TuningJob,
    join,
    parameter,
)
from orchestration.local import Fault
from tests.conformance import pipelines
from tests.faults.calls import Call
from tests.faults.cell import KILLED, LONG_S, SCRIPT, Cell, Deed
from tests.faults.stand_ins import STOPPED

_MACHINE = "ml.m5.large"
_MODEL = join("s3://", parameter("bucket"), "/model")
_IN_USE = ("ResourceInUse", "Job name must be unique within an AWS account and region")


def _copy() -> Any:
    manifest = join("s3://", parameter("bucket"), "/lists/manifest.csv")
    destination = S3Destination(copy_by="batch", manifest=manifest, batch_role=pipelines.BATCH_ROLE)
    return DataStaging(name="staging", source=parameter("data"), destination=destination)


def _search() -> Any:
    fields: dict[str, Any] = {
        "name": "tune",
        "image": pipelines.IMAGE,
        "source": Source.at(pipelines.SOURCE, "train.py"),
        "hyperparameters": {"scores": "0.5,0.7"},
        "checkpoints": {},
        "cluster": {"instance_type": _MACHINE},
        "objective": {"metric": "score", "direction": "max", "regex": "score=([0-9.]+)"},
        "ranges": {"rate": {"categorical": [0.1, 0.5]}},
        "search": "grid",
        "limits": {"parallel": 2},
    }
    return TuningJob.model_validate(fields)


def _process() -> Any:
    fields: dict[str, Any] = {
        "name": "split",
        "image": pipelines.IMAGE,
        "command": ["split"],
        "inputs": {"model": {"uri": _MODEL}},
        "results": {"facts": {}},
        "cluster": {"instance_type": _MACHINE},
    }
    return ProcessingJob.model_validate(fields)


def _transform() -> Any:
    fields: dict[str, Any] = {
        "name": "score",
        "image": pipelines.IMAGE,
        "model_data": _MODEL,
        "data": join(parameter("data"), "/train"),
        "content_type": "text/csv",
        "instance_type": _MACHINE,
    }
    return BatchTransform.model_validate(fields)


@dataclass(frozen=True)
class _Row:
    """A pipeline of one stage: its call that starts a job, and how the job is met."""

    call: Call
    stage: Any
    job: Fault
    """The failure of the job, or of each that it starts."""
    stopped: Fault | None = None
    """Somebody stops the job; None where a deed does."""
    deed: Deed | None = None
    slow: Fault | None = None
    """Without it the job would be over before the deed."""


def _sagemaker(name: str, operation: str, stage: Any) -> _Row:
    return _Row(
        Call(name, "sagemaker", operation, exists=_IN_USE),
        stage,
        Fault.job(stage.name, reason=SCRIPT, operation=operation),
        stopped=Fault.job(stage.name, operation=STOPPED),
    )


_FAILS = Fault.job("copy-by-batch", operation="CreateJob", reason="Broken: the disk is full")
_ROWS = (
    _Row(
        Call("copy by batch", "s3control", "CreateJob"),
        _copy(),
        _FAILS,
        deed="cancel the copy",
        slow=replace(_FAILS, delay_s=LONG_S),
    ),
    _Row(
        Call("tune", "sagemaker", "CreateHyperParameterTuningJob", exists=_IN_USE),
        _search(),
        Fault.job("tune", reason=SCRIPT, operation="CreateTrainingJob", times=2),
        deed="stop the search",
    ),
    _sagemaker("process", "CreateProcessingJob", _process()),
    _sagemaker("transform", "CreateTransformJob", _transform()),
)


def small() -> dict[str, Pipeline]:
    """Return the pipelines, by the rows of the matrix."""
    return {
        row.call.name: pipelines.pipeline(row.call.name.replace(" ", "-"), row.stage)
        for row in _ROWS
    }


def small_cells() -> Iterator[Cell]:
    """Yield the faults that decide whether a job is paid once and ends as it must."""
    for row in _ROWS:
        call = row.call

        def cell(kind: str, *faults: Fault, survives: bool = False, call: Call = call) -> Cell:
            return Cell(call.name, kind, faults, survives, served=False, of=call.name)

        yield cell("lost response", call.lost(), survives=True)
        if call.exists:
            code, message = call.exists
            taken = call.answered(code, message, after_effect=True)
            yield cell("exists already", taken, survives=True)
        yield replace(cell(KILLED, survives=True), moment=call.moment())
        yield cell("job fails", row.job)
        met = [fault for fault in (row.stopped, row.slow) if fault is not None]
        moment = None if row.deed is None else call.moment()
        yield replace(cell("stopped by someone", *met), moment=moment, deed=row.deed)


def lay(s3: Any) -> None:
    """Write what these pipelines read beside the data: a manifest and a model."""
    bucket = pipelines.PARAMETERS["bucket"]
    rows = "incoming,set/train/one.csv\nincoming,set/holdout/held.csv\n"
    s3.put_object(Bucket=bucket, Key="lists/manifest.csv", Body=rows)
    s3.put_object(Bucket=bucket, Key="model/model.json", Body='{"score": 0.7}')
