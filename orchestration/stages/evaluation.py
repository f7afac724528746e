"""Evaluation of every checkpoint of a training job, and the choice of the best one.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateProcessingJob.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

from pydantic import Field
from typing_extensions import override

from orchestration.errors import Problem
from orchestration.expressions import (
    Best,
    Compare,
    Function,
    Item,
    Result,
    Tree,
    apply,
    field,
    join,
    run_id,
)
from orchestration.graph import (
    Adopt,
    Call,
    ErrorPattern,
    ForEach,
    Graph,
    Operation,
    Output,
    Read,
    Require,
    Step,
    Until,
)
from orchestration.refs import Expression, Ref
from orchestration.stages.listing import not_empty, prefix_of
from orchestration.stages.outputs import Outputs, output
from orchestration.stages.stage import SAMPLE, Context, Fragment, Gate, Stage
from orchestration.stages.values import (
    ABSENT,
    Extra,
    ExtraRequest,
    Gibibytes,
    Model,
    Seconds,
    Source,
    Text,
    Vpc,
    s3_problem,
)

_INPUT = "/opt/ml/processing/input"
_OUTPUT = "/opt/ml/processing/output"
_REPORT = "evaluation.json"


class Threshold(Model):
    """The metric that the best checkpoint must reach for the pipeline to go on."""

    value: float
    """At least this where the metric's direction is ``max``, at most this where it is ``min``."""
    on_miss: Literal["fail", "stop"] = "fail"
    """``fail``: the run fails with ``BelowThreshold``. ``stop``: it ends well, and what depends on
    the evaluation does not happen; the output ``passed`` says which it was."""


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
            self._request(SAMPLE)
        except ValueError as error:
            yield Problem("extra_request", str(error))

    @override
    def lower(self, context: Context) -> Fragment:
        name = self.name
        measured = apply(Function.NUMBERED, Result(f"{name}.each", "items"), "metric")
        best = Best(measured, "metric", self.direction)
        metric = field(best, "metric")
        passed, gate = self._gate(metric)
        steps: list[Step] = [
            self._list(),
            self._some(),
            self._each(context),
            self._finite(measured),
        ]
        if gate is not None and gate.on_miss == "fail":
            steps.append(self._stopper(gate, metric))
        return Fragment(
            steps=tuple(steps),
            outputs={
                "best_checkpoint": field(best, "checkpoint"),
                "best_metric": metric,
                "passed": passed,
                "results": Result(f"{name}.each", "items"),
            },
            gate=gate,
        )

    def _gate(self, metric: Tree) -> tuple[Tree, Gate | None]:
        if self.threshold is None:
            return True, None
        op: Literal["ge", "le"] = "ge" if self.direction == "max" else "le"
        condition = Compare(op, metric, self.threshold.value)
        return condition, Gate(condition, self.threshold.on_miss)

    def _stopper(self, gate: Gate, metric: Tree) -> Require:
        needed = "at least" if self.direction == "max" else "at most"
        value = self.threshold.value if self.threshold is not None else 0
        cause = join(
            f"the best checkpoint's {self.metric} is ",
            cast("Expression[object]", metric),
            f"; it must be {needed} ",
            apply(Function.TEXT, value),
        )
        return Require(
            name=f"{self.name}.gate",
            condition=gate.condition,
            error="BelowThreshold",
            cause=cause,
            after=(f"{self.name}.finite",),
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
        described = {"ProcessingJobName": self._job_name(context)}
        call = Call(
            name=job,
            operation=Operation("sagemaker", "CreateProcessingJob", self._request(context)),
            adopt=Adopt(exists=ErrorPattern("ResourceInUse"), name_field="ProcessingJobName"),
            until=Until(
                poll=Operation("sagemaker", "DescribeProcessingJob", described),
                status=("ProcessingJobStatus",),
                success=frozenset(["Completed"]),
                failure=frozenset(["Failed", "Stopped"]),
                reason=("FailureReason",),
                absent=ABSENT,
                interval_s=self.poll_interval_s,
                timeout_s=self.max_runtime_s + 3600,
                stop=Operation("sagemaker", "StopProcessingJob", described),
            ),
        )
        read = Read(
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
            body=Graph((call, read)),
            collect={"checkpoint": uri, "metric": Result(read.name, "metric")},
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

    def _request(self, context: Context) -> dict[str, Any]:
        request: dict[str, Any] = {
            "ProcessingJobName": self._job_name(context),
            "RoleArn": context.role,
            "AppSpecification": {
                "ImageUri": self.image,
                "ContainerEntrypoint": [
                    "python3",
                    f"{_INPUT}/code/{self.source.entry_point}",
                ],
                "ContainerArguments": [
                    *("--checkpoint", f"{_INPUT}/checkpoint"),
                    *("--data", f"{_INPUT}/data"),
                    *("--output", _OUTPUT),
                    *self.arguments,
                ],
            },
            "ProcessingInputs": [
                _input("code", join(context.source(self.source), "/files")),
                _input("checkpoint", self._checkpoint_uri()),
                _input("data", self.data),
            ],
            "ProcessingOutputConfig": {
                "Outputs": [
                    {
                        "OutputName": "report",
                        "S3Output": {
                            "S3Uri": self._report_location(context),
                            "LocalPath": _OUTPUT,
                            "S3UploadMode": "EndOfJob",
                        },
                    }
                ]
            },
            "ProcessingResources": {
                "ClusterConfig": {
                    "InstanceCount": 1,
                    "InstanceType": self.instance_type,
                    "VolumeSizeInGB": self.volume_gib,
                }
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": self.max_runtime_s},
            "Tags": context.tag_list(self.name),
        }
        if self.environment:
            request["Environment"] = dict(self.environment)
        if self.vpc is not None:
            request["NetworkConfig"] = {"VpcConfig": self.vpc.request()}
        return ExtraRequest.merged(request, self.extra_request)


def _input(name: str, uri: Tree) -> dict[str, Any]:
    return {
        "InputName": name,
        "S3Input": {
            "S3Uri": uri,
            "LocalPath": f"{_INPUT}/{name}",
            "S3DataType": "S3Prefix",
            "S3InputMode": "File",
        },
    }
