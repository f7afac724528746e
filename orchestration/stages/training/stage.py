"""Distributed training as a SageMaker training job.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingJob.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from orchestration.errors import Problem
from orchestration.expressions import Result, Tree
from orchestration.graph import (
    Adopt,
    Alternative,
    Call,
    ErrorPattern,
    Operation,
    Output,
    Until,
)
from orchestration.refs import Ref
from orchestration.stages.capacity import fallback
from orchestration.stages.outputs import Outputs, output
from orchestration.stages.stage import SAMPLE, Context, Fragment
from orchestration.stages.training import checks
from orchestration.stages.training.fields import TrainingFields
from orchestration.stages.training.request import request
from orchestration.stages.values import ABSENT

_IN_USE = ErrorPattern("ResourceInUse")
_PROVISIONING_S = 3600
"""The service ends a job by itself; so much more covers provisioning and upload."""


@dataclass(frozen=True, slots=True)
class TrainingJobOutputs:
    """References to what a :class:`TrainingJob` gives."""

    job_name: Ref[str] = output(shown=True)
    model_artifacts: Ref[str] = output(
        shown=True, written=True, archive=lambda job: job.output.compression != "NONE"
    )
    """S3 URI of ``model.tar.gz``."""
    checkpoints: Ref[str] = output(
        exists=lambda job: job.checkpoints is not None,
        otherwise="give it checkpoints: {}",
        written=True,
        archive=False,
    )
    """S3 URI of the checkpoints, if the job keeps any."""
    billable_time_s: Ref[int] = output()
    """Seconds that are paid, after the spot discount."""
    code_digest: Ref[str] = output(
        exists=lambda job: job.source is not None and job.source.uri is None,
        otherwise="it has no source of this machine",
    )
    """SHA-256 of the source: of equal digests, the code is equal."""


class TrainingJob(TrainingFields):
    """A training job over a cluster of machines, distributed by a strategy.

    What it runs is a ``framework`` in AWS's container for it, an ``image`` of your own (with the
    name of the ``framework`` in it, if you like), or an ``algorithm``. Without a ``source``, the
    image's own program runs: a built-in algorithm, or yours; hyperparameters are then sent as text.
    """

    outputs: ClassVar[Outputs[TrainingJobOutputs]] = Outputs(TrainingJobOutputs)

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        yield from checks.problems(self, context)

    @override
    def warnings(self) -> Iterator[Problem]:
        yield from checks.warnings(self)

    @override
    def facts(self) -> Iterator[str]:
        yield from checks.facts(self)

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
        if self.source is not None and self.source.uri is None:
            given["code_digest"] = self.source.sha256 or ""
        return Fragment(steps=(call,), outputs=given)

    def request(self, context: Context, candidate: int = 0) -> dict[str, Any]:
        """The request that starts the job on one of the :meth:`candidates`.

        Raises :class:`~orchestration.errors.PipelineError` where the framework has no image for it,
        ``ValueError`` where ``extra_request`` repeats what is set already.
        """
        return request(self, context, candidate)

    def _call(self, name: str, context: Context) -> Call:
        first, *others = self._attempts(context)
        limit = self.spot.max_wait_s if self.spot is not None else self.max_runtime_s
        return Call(
            name=name,
            operation=first.operation,
            fallback=fallback(first.label, others, "training job usage", self.wait_for_capacity_h),
            adopt=Adopt(exists=_IN_USE, name_field="TrainingJobName"),
            until=Until(
                poll=first.poll,
                status=("TrainingJobStatus",),
                success=frozenset(["Completed"]),
                failure=frozenset(["Failed", "Stopped"]),
                reason=("FailureReason",),
                absent=ABSENT,
                limit=("SecondaryStatus",),
                limits=self._limits(),
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

    def _limits(self) -> dict[str, str]:
        """Return what SageMaker calls the ends of the job's time, each with its setting."""
        limits = {
            "MaxRuntimeExceeded": f"max_runtime_s of stage {self.name} is {self.max_runtime_s}"
        }
        if self.spot is not None:
            wait = f"spot.max_wait_s of stage {self.name} is {self.spot.max_wait_s}"
            limits["MaxWaitTimeExceeded"] = wait
        return limits

    def _attempts(self, context: Context) -> Iterator[Alternative]:
        for number, candidate in enumerate(self.candidates()):
            request = self.request(context, number)
            named = {"TrainingJobName": request["TrainingJobName"]}
            yield Alternative(
                label=self.cluster.label if candidate is None else candidate.label,
                operation=Operation("sagemaker", "CreateTrainingJob", request),
                poll=Operation("sagemaker", "DescribeTrainingJob", named),
                stop=Operation("sagemaker", "StopTrainingJob", named),
            )
