"""Evaluation of every checkpoint of a training job, and the choice of the best one.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateProcessingJob.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, cast

from pydantic import Field
from typing_extensions import override

from orchestration.errors import Problem
from orchestration.expressions import (
    Best,
    Compare,
    Function,
    Item,
    Result,
    apply,
    field,
    join,
    run_id,
)
from orchestration.graph import Call, ForEach, Graph, Operation, Output, Read, Require, Step
from orchestration.refs import Expression, Ref
from orchestration.stages.capacity import Hours, fallback
from orchestration.stages.listing import not_empty, prefix_of
from orchestration.stages.outputs import Outputs, output
from orchestration.stages.processing.gate import Threshold
from orchestration.stages.processing.request import (
    INPUT,
    OUTPUT,
    USAGE,
    Job,
    code,
    read,
    script,
    written,
)
from orchestration.stages.stage import SAMPLE, Context, Fragment, Stage
from orchestration.stages.training.cluster import Candidate
from orchestration.stages.values import (
    Extra,
    Gibibytes,
    Seconds,
    Source,
    Text,
    Vpc,
    s3_problem,
)

_REPORT = "evaluation.json"


@dataclass(frozen=True, slots=True)
class CheckpointEvaluationOutputs:
    """References to what a :class:`CheckpointEvaluation` gives."""

    best_checkpoint: Ref[str] = output(shown=True)
    """S3 URI of the best checkpoint's directory."""
    best_metric: Ref[float] = output(shown=True)
    passed: Ref[bool] = output(shown=True)
    """True if the threshold is met, or if there is none."""
    results: Ref[list[dict[str, object]]] = output(shown=True)
    """``checkpoint`` and ``metric`` of every checkpoint, in the order of their names; a metric that
    is NaN or infinite is null, and its checkpoint has lost."""


class CheckpointEvaluation(Stage):
    """Runs the evaluation script on every checkpoint and picks the best by one metric.

    The script is started as ``python3 <entry_point> --checkpoint DIR --data DIR --output DIR`` and
    writes ``evaluation.json`` into the output directory: ``{"metrics": {"accuracy": 0.97}}``.
    """

    kind: Literal["checkpoint_evaluation"] = "checkpoint_evaluation"
    checkpoints: Text
    """S3 URI of the checkpoints, each a directory below it: ``train.outputs.checkpoints``."""
    checkpoint_prefix: str = Field(default="", max_length=100)
    """Beginning of the names of complete checkpoints (``epoch-``, ``checkpoint-``); others are
    ignored."""
    data: Text
    """S3 URI of the held-back data."""
    image: Text
    source: Source
    """The evaluation script and what it imports."""
    arguments: tuple[Text, ...] = Field(default=(), max_length=90)
    """Further arguments of the script."""
    max_checkpoints: int = Field(default=100, ge=1, le=500)
    """Most checkpoints to evaluate; with more, the stage fails before it starts a job. Each one may
    write 25 of the 25,000 events that Step Functions allows an execution."""
    instance_type: Text
    volume_gib: Gibibytes = 30
    max_concurrency: int = Field(default=4, ge=1, le=40)
    """Checkpoints evaluated at a time."""
    max_runtime_s: Seconds = Field(default=3600, le=5 * 86_400)
    metric: str = Field(min_length=1, max_length=100)
    """Its name in the report."""
    direction: Literal["max", "min"]
    threshold: Threshold | None = None
    environment: dict[str, Text] = Field(default={}, max_length=100)
    vpc: Vpc | None = None
    wait_for_capacity_h: Hours | None = None
    """Hours in which each job is requested again and again where there is no capacity or quota;
    ``None``: once."""
    poll_interval_s: Seconds = 30
    extra_request: Extra = {}
    """Further fields of ``CreateProcessingJob``."""

    outputs: ClassVar[Outputs[CheckpointEvaluationOutputs]] = Outputs(CheckpointEvaluationOutputs)

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        yield from s3_problem("checkpoints", self.checkpoints)
        yield from s3_problem("data", self.data)
        if self.source.archive_only:
            yield Problem(
                "source",
                "is an archive, which a processing job does not unpack; give it a directory, or "
                "the uri of a prefix that holds files/",
            )
        try:
            self._job(SAMPLE).request()
        except ValueError as error:
            yield Problem("extra_request", str(error))

    @override
    def lower(self, context: Context) -> Fragment:
        name = self.name
        measured = apply(Function.NUMBERED, Result(f"{name}.each", "items"), "metric")
        best = Best(measured, "metric", self.direction)
        metric = field(best, "metric")
        gate = None if self.threshold is None else self.threshold.gate(metric, self.direction)
        steps: list[Step] = [
            self._list(),
            self._some(),
            self._each(context),
            self._finite(measured),
        ]
        if self.threshold is not None and self.threshold.on_miss == "fail":
            steps.append(
                self.threshold.stopper(
                    f"{name}.gate",
                    metric,
                    self.direction,
                    what=f"the best checkpoint's {self.metric}",
                    after=f"{name}.finite",
                )
            )
        return Fragment(
            steps=tuple(steps),
            outputs={
                "best_checkpoint": field(best, "checkpoint"),
                "best_metric": metric,
                "passed": True if gate is None else gate.condition,
                "results": Result(f"{name}.each", "items"),
            },
            gate=gate,
        )

    def _finite(self, measured: Expression[object]) -> Require:
        """A checkpoint that diverged has lost; where all have, there is nothing to go on with."""
        cause = f"stage {self.name}: {self.metric} is NaN or infinite for every checkpoint"
        return Require(
            name=f"{self.name}.finite",
            condition=Compare("gt", apply(Function.COUNT, measured), 0),
            error="MetricNotFinite",
            cause=cause,
        )

    def _list(self) -> Call:
        return Call(
            name=f"{self.name}.list",
            operation=Operation(
                "s3",
                "ListObjectsV2",
                {
                    "Bucket": apply(Function.S3_BUCKET, self.checkpoints),
                    "Prefix": join(prefix_of(self.checkpoints), self.checkpoint_prefix),
                    "Delimiter": "/",
                    "MaxKeys": self.max_checkpoints,
                },
            ),
            outputs={
                "found": Output(
                    ("CommonPrefixes",),
                    kind="list",
                    columns=("Prefix",),
                    texts=("Prefix",),
                    default=(),
                ),
                "truncated": Output(("IsTruncated",), default=False),
            },
        )

    def _some(self) -> Require:
        count = apply(Function.COUNT, Result(f"{self.name}.list", "found"))
        cause = join(
            f"between 1 and {self.max_checkpoints} checkpoints are wanted below ",
            self.checkpoints,
            f", named {self.checkpoint_prefix}*; found ",
            count,
        )
        more = Result(f"{self.name}.list", "truncated")
        return not_empty(f"{self.name}.usable", count, more, error="NoCheckpoints", cause=cause)

    def _each(self, context: Context) -> ForEach:
        uri = self._checkpoint_uri()
        job = f"{self.name}.each.job"
        call = self._job(context).call(job, self.poll_interval_s)
        machines = Candidate(self.instance_type, 1).label
        instead = fallback(machines, (), USAGE, self.wait_for_capacity_h)
        report = Read(
            name=f"{self.name}.each.report",
            uri=join(self._report_location(context), "/", _REPORT),
            outputs={
                "metric": Output(("metrics", self.metric), kind="number", not_finite="null"),
            },
            after=(job,),
        )
        return ForEach(
            name=f"{self.name}.each",
            items=Result(f"{self.name}.list", "found"),
            body=Graph((replace(call, fallback=instead), report)),
            collect={"checkpoint": uri, "metric": Result(report.name, "metric")},
            max_concurrency=self.max_concurrency,
            after=(f"{self.name}.usable",),
        )

    def _checkpoint_uri(self) -> Expression[object]:
        # A listed prefix is the whole key: <prefix>/epoch-0003/
        bucket = apply(Function.S3_BUCKET, self.checkpoints)
        return join("s3://", bucket, "/", cast("Expression[object]", field(Item(), "Prefix")))

    def _token(self) -> Expression[object]:
        prefix = cast("Expression[object]", field(Item(), "Prefix"))
        return apply(Function.HASH, join(run_id(), "/", prefix))

    def _job_name(self, context: Context) -> Expression[str]:
        return join(context.name_prefix(self.name), self._token())

    def _report_location(self, context: Context) -> Expression[str]:
        return join(context.location(self.name), "/", self._token())

    def _job(self, context: Context) -> Job:
        return Job(
            name=self._job_name(context),
            context=context,
            image=self.image,
            entrypoint=("python3", script(self.source)),
            arguments=(
                *("--checkpoint", f"{INPUT}/checkpoint"),
                *("--data", f"{INPUT}/data"),
                *("--output", OUTPUT),
                *self.arguments,
            ),
            inputs=(
                code(self.source, context),
                read("checkpoint", self._checkpoint_uri()),
                read("data", self.data),
            ),
            outputs=(written("report", self._report_location(context), OUTPUT),),
            cluster={
                "InstanceCount": 1,
                "InstanceType": self.instance_type,
                "VolumeSizeInGB": self.volume_gib,
            },
            max_runtime_s=self.max_runtime_s,
            tags=context.tag_list(self.name),
            environment=self.environment,
            network={} if self.vpc is None else {"VpcConfig": self.vpc.request()},
            extra=self.extra_request,
        )
