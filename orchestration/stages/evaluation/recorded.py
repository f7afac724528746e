"""The metrics that training has written into its checkpoints, read without a job.

A file in the checkpoint belongs to it for certain. What SageMaker keeps does not: a training job's
``FinalMetricDataList`` has last values only, and CloudWatch has times of prints, which say nothing
about the step after which a checkpoint was saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from orchestration.checks.places import place, value_at
from orchestration.expressions import Compare, Function, Item, Result, Tree, apply, field, join
from orchestration.graph import (
    Call,
    ErrorPattern,
    ForEach,
    Graph,
    Operation,
    Part,
    Read,
    Recovery,
    Require,
)
from orchestration.refs import Expression
from orchestration.stages.evaluation.comparing import RecordedBest
from orchestration.stages.evaluation.fields import EvaluationFields
from orchestration.stages.evaluation.jobs import listed_uri

NUMBER: Final = "number"
"""The field of a checkpoint that was measured by :func:`measured`."""
_AT_A_TIME: Final = 10


def reports(stage: EvaluationFields, items: Tree, after: str) -> ForEach:
    """Return the step that reads every checkpoint's own report."""
    places = {column: stage.place(name) for column, name in stage.measured().items()}
    own = {"checkpoint": listed_uri(stage)}
    each = _each(stage, f"{stage.name}.each", stage.recorded or "", places, own, items)
    return replace(each, after=(after,))


def copied(stage: EvaluationFields, items: Tree, target: Tree, after: str) -> ForEach:
    """Return the step that lays every checkpoint's own report where the job that decides reads.

    A checkpoint without one has none there, and has failed.
    """
    report = join(listed_uri(stage), stage.recorded or "")
    key = apply(Function.URL_PATH, apply(Function.S3_KEY, report))
    request: dict[str, Tree] = {
        "Bucket": apply(Function.S3_BUCKET, target),
        "Key": apply(Function.S3_KEY, target),
        "CopySource": join(apply(Function.S3_BUCKET, report), "/", key),
    }
    copy = Call(
        name=f"{stage.name}.each.copy",
        operation=Operation("s3", "CopyObject", request),
        recoveries=(Recovery(ErrorPattern("NoSuchKey"), {}),),
    )
    return ForEach(
        name=f"{stage.name}.each",
        items=items,
        body=Graph((copy,)),
        collect={},
        max_concurrency=max(stage.max_concurrency, _AT_A_TIME),
        at_most=None if stage.select is None else stage.max_checkpoints,
        after=(after,),
    )


def measured(stage: EvaluationFields, best: RecordedBest, items: Tree) -> ForEach:
    """Return the step that reads the number of each checkpoint, by which some are selected."""
    prefix: dict[str, Tree] = {"Prefix": field(Item(), "Prefix")}
    places = {NUMBER: place(best.metric)}
    return _each(stage, f"{stage.name}.recorded", best.file, places, prefix, items)


def selected(stage: EvaluationFields, best: RecordedBest) -> Expression[object]:
    """Return the best of those that were measured, in their order."""
    rows = Result(f"{stage.name}.recorded", "items")
    return apply(Function.TOP, rows, NUMBER, best.direction, best.count)


def finite(stage: EvaluationFields, best: RecordedBest) -> Require:
    """Return the requirement that one of the checkpoints has a number."""
    cause = f"{best.metric} is NaN or infinite in the {best.file} of every checkpoint"
    return Require(
        name=f"{stage.name}.selected",
        condition=Compare("gt", apply(Function.COUNT, selected(stage, best)), 0),
        error="MetricNotFinite",
        cause=join(f"stage {stage.name}: {cause}"),
        after=(f"{stage.name}.recorded",),
    )


def _each(
    stage: EvaluationFields,
    name: str,
    file: str,
    places: Mapping[str, tuple[Part, ...]],
    own: Mapping[str, Tree],
    items: Tree,
) -> ForEach:
    read = Read(
        name=f"{name}.report",
        uri=join(listed_uri(stage), file),
        outputs={
            column: value_at(parts, kind="number", not_finite="null")
            for column, parts in places.items()
        },
    )
    return ForEach(
        name=name,
        items=items,
        body=Graph((read,)),
        collect={**own, **{column: Result(read.name, column) for column in places}},
        max_concurrency=max(stage.max_concurrency, _AT_A_TIME),
        at_most=None if stage.select is None else stage.max_checkpoints,
        after=(f"{stage.name}.usable",),
    )
