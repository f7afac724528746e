"""Distributed training as a SageMaker training job.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingJob.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from orchestration.errors import Problem
from orchestration.expressions import Result, Tree
from orchestration.graph import (
    Adopt,
    Alternative,
    Call,
    ErrorPattern,
    Fallback,
    Operation,
    Output,
    Until,
)
from orchestration.refs import Ref
from orchestration.stages.automatic import Auto
from orchestration.stages.batch import Batch
from orchestration.stages.channels import Channel, InputMode
from orchestration.stages.cluster import Candidate, Cluster, ManagedSpot
from orchestration.stages.container import Framework
from orchestration.stages.observability import Debugger, Experiment, Profiler, TensorBoard
from orchestration.stages.stage import SAMPLE, Context, Fragment, Stage, outputs
from orchestration.stages.values import Extra, Model, Seconds, Source, Text, Value, Vpc
from orchestration.strategies import NoStrategy, Strategy

_IN_USE = ErrorPattern("ResourceInUse")
_PROVISIONING_S = 3600
"""The service ends a job by itself; so much more covers provisioning and upload."""


class Checkpoints(Model):
    """A directory of the container that SageMaker keeps in step with S3 while training goes on."""

    uri: Text | None = None
    """Where in S3; by default the run's own place in the workspace."""
    local_path: str | None = "/opt/ml/checkpoints"
    """``None``: not said, and SageMaker takes ``/opt/ml/checkpoints``."""


class ModelOutput(Model):
    """Where the model and what else the script leaves go."""

    uri: Text | None = None
    """A prefix in S3, below which SageMaker writes ``<job>/output/model.tar.gz``; by default the
    run's own place in the workspace."""
    kms_key: Text | None = None
    """Encrypts it."""
    compression: Literal["GZIP", "NONE"] | None = None
    """``NONE``: single files instead of ``model.tar.gz``."""


@dataclass(frozen=True, slots=True)
class TrainingJobOutputs:
    """References to what a :class:`TrainingJob` gives."""

    job_name: Ref[str]
    model_artifacts: Ref[str]
    """S3 URI of ``model.tar.gz``."""
    checkpoints: Ref[str]
    """S3 URI of the checkpoints, if the job keeps any."""
    billable_time_s: Ref[int]
    """Seconds that are paid, after the spot discount."""


class TrainingJob(Stage):
    """A training job over a cluster of machines, distributed by a strategy.

    What it runs is a ``framework`` in AWS's container for it, an ``image`` of your own (with the
    name of the ``framework`` in it, if you like), or an ``algorithm``.
    """

    kind: Literal["training_job"] = "training_job"
    image: Text | None = None
    """The training container, by its registry path."""
    framework: Framework | None = None
    algorithm: Text | None = None
    """Name or ARN of an algorithm: one of yours, or from AWS Marketplace."""
    entrypoint: tuple[Text, ...] = Field(default=(), max_length=100)
    """Replaces the container's own entry point, and with it the training toolkit."""
    arguments: tuple[Text, ...] = Field(default=(), max_length=100)
    """Arguments of the container's entry point."""
    source: Source | None = None
    """The code to run in a container with the SageMaker training toolkit; ``None``: the container's
    own."""
    log_level: int = Field(default=20, ge=0, le=50)
    """Of the training toolkit: 10 debug, 20 info, 30 warnings."""
    hyperparameters: dict[str, Value] = {}
    """JSON-encoded where there is a ``source``, as the toolkit reads them; else sent as text."""
    channels: dict[str, Channel] = Field(default={}, max_length=20)
    cluster: Cluster = Cluster()
    strategy: Annotated[Strategy | Auto, Field(discriminator="kind")] = NoStrategy()
    """How it is distributed; ``auto``: as the planner picks, machines included."""
    spot: ManagedSpot | None = None
    checkpoints: Checkpoints | None = None
    max_runtime_s: Seconds = Field(default=86_400, le=28 * 86_400)
    max_retries: int | None = Field(default=None, ge=1, le=30)
    """Times that SageMaker starts the job again by itself after an error of its own."""
    batch: Batch | None = None
    """How large the batch is; ``orchestrate validate`` counts with it and checks it."""
    metrics: dict[str, str] = Field(default={}, max_length=40)
    """Regular expressions over the log, by metric name; the first group is the value."""
    metrics_time_series: bool = False
    """Whether SageMaker keeps the metrics over time beside the last values."""
    environment: dict[str, Text] = Field(default={}, max_length=100)
    vpc: Vpc | None = None
    input_mode: InputMode = "File"
    output: ModelOutput = ModelOutput()
    debugger: Debugger | None = None
    profiler: Profiler | None = None
    tensorboard: TensorBoard | None = None
    experiment: Experiment | None = None
    enable_network_isolation: bool = False
    encrypt_inter_container_traffic: bool = False
    tags: dict[str, str] = Field(default={}, max_length=40)
    """Beside those of the pipeline."""
    poll_interval_s: Seconds = 30
    extra_request: Extra = {}
    """Further fields of ``CreateTrainingJob``: added, checked like the rest, never dropped."""

    output_names: ClassVar[tuple[str, ...]] = (
        "job_name",
        "model_artifacts",
        "checkpoints",
        "billable_time_s",
    )

    @property
    def outputs(self) -> TrainingJobOutputs:
        """References to what this stage gives."""
        return outputs(TrainingJobOutputs, self.name)

    @property
    def distribution(self) -> Strategy:
        """The strategy; none as long as it is still to be planned."""
        return NoStrategy() if isinstance(self.strategy, Auto) else self.strategy

    @override
    def given_outputs(self) -> frozenset[str]:
        every = frozenset(self.output_names)
        return every if self.checkpoints is not None else every - {"checkpoints"}

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        from orchestration.stages.training_checks import problems

        yield from problems(self, context)

    @override
    def warnings(self) -> Iterator[Problem]:
        from orchestration.stages.training_checks import warnings

        yield from warnings(self)

    @override
    def facts(self) -> Iterator[str]:
        from orchestration.stages.training_checks import facts

        yield from facts(self)

    @override
    def lower(self, context: Context) -> Fragment:
        name = f"{self.name}.job"
        call = self._call(name, context)
        given: dict[str, Tree] = {
            output: Result(name, output)
            for output in ("job_name", "model_artifacts", "billable_time_s")
        }
        if self.checkpoints is not None:
            given["checkpoints"] = self.checkpoints_uri(context)
        return Fragment(steps=(call,), outputs=given, shown=("job_name", "model_artifacts"))

    def checkpoints_uri(self, context: Context) -> Text:
        """Where the checkpoints go in S3."""
        if self.checkpoints is not None and self.checkpoints.uri is not None:
            return self.checkpoints.uri
        return context.location(self.name, "checkpoints")

    def candidates(self) -> tuple[Candidate | None, ...]:
        """What one job after the other asks for; ``None``: groups or preferences."""
        return self.cluster.candidates() or (None,)

    def request(self, context: Context, candidate: int = 0) -> dict[str, Any]:
        """The request that starts the job on one of the :meth:`candidates`.

        Raises :class:`~orchestration.errors.PipelineError` where the framework has no image for it,
        ``ValueError`` where ``extra_request`` repeats what is set already.
        """
        from orchestration.stages.training_request import request

        return request(self, context, candidate)

    def _call(self, name: str, context: Context) -> Call:
        first, *others = self._attempts(context)
        limit = self.spot.max_wait_s if self.spot is not None else self.max_runtime_s
        return Call(
            name=name,
            operation=first.operation,
            fallback=_fallback(first.label, others) if others else None,
            adopt=Adopt(exists=_IN_USE, name_field="TrainingJobName"),
            until=Until(
                poll=first.poll,
                status=("TrainingJobStatus",),
                success=frozenset(["Completed"]),
                failure=frozenset(["Failed", "Stopped"]),
                reason=("FailureReason",),
                interval_s=self.poll_interval_s,
                timeout_s=limit + (self.cluster.max_pending_s or 0) + _PROVISIONING_S,
                stop=first.stop,
                outputs={
                    "job_name": Output(("TrainingJobName",), kind="string"),
                    "model_artifacts": Output(("ModelArtifacts", "S3ModelArtifacts"), default=None),
                    "billable_time_s": Output(("BillableTimeInSeconds",), default=None),
                },
            ),
        )

    def _attempts(self, context: Context) -> Iterator[Alternative]:
        for number, candidate in enumerate(self.candidates()):
            request = self.request(context, number)
            named = {"TrainingJobName": request["TrainingJobName"]}
            yield Alternative(
                label="" if candidate is None else candidate.label,
                operation=Operation("sagemaker", "CreateTrainingJob", request),
                poll=Operation("sagemaker", "DescribeTrainingJob", named),
                stop=Operation("sagemaker", "StopTrainingJob", named),
            )


def _fallback(label: Tree, others: list[Alternative]) -> Fallback:
    return Fallback(
        label=label,
        alternatives=tuple(others),
        reasons=("CapacityError",),
        refusals=(ErrorPattern("ResourceLimitExceeded", "training job usage"),),
        absent=(ErrorPattern("ValidationException", "not found"), ErrorPattern("ResourceNotFound")),
    )
