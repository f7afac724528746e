"""The processing jobs that evaluate, and the reports that they write.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateProcessingJob.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from orchestration.checks.places import value_at
from orchestration.expressions import Function, Item, Tree, apply, field, join, run_id
from orchestration.graph import Call, Read, Step
from orchestration.refs import Expression
from orchestration.stages.capacity import fallback
from orchestration.stages.evaluation import tuned
from orchestration.stages.evaluation.fields import METRIC, EvaluationFields, known
from orchestration.stages.evaluation.predicting import (
    PREDICTIONS,
    Predicting,
    Predictor,
    of_champion,
)
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
from orchestration.stages.stage import Context
from orchestration.stages.training.cluster import Candidate

REPORTS: Final = "reports"
"""The folder of a run's place that holds all evaluations, where a job decides."""
_REPORT: Final = "evaluation.json"


def second_name(stage: EvaluationFields, context: Context, job: str) -> Expression[str]:
    """Return the name of a further job of the stage, as long as that of the first."""
    token = apply(Function.HASH, join(context.resource_name(stage.name), f"/{job}"))
    return join(context.name_prefix(stage.name), token)


def listed_uri(stage: EvaluationFields) -> Expression[object]:
    """Return the S3 URI of the checkpoint that the loop is at."""
    # A listed prefix is the whole key: <prefix>/epoch-0003/
    bucket = apply(Function.S3_BUCKET, stage.checkpoints)
    return join("s3://", bucket, "/", cast("Expression[object]", field(Item(), "Prefix")))


def element(stage: EvaluationFields) -> Expression[object]:
    """Return the name of the element that the loop is at: a prefix, or a training job."""
    key = "Prefix" if stage.subject == "checkpoints" else tuned.JOB
    return cast("Expression[object]", field(Item(), key))


@dataclass(frozen=True)
class Evaluating:
    """The job that evaluates one checkpoint, or one model."""

    stage: EvaluationFields
    context: Context
    champion: Predictor | None = None
    """The champion, if that is evaluated; in the same way as the others."""

    def steps(self, prefix: str) -> tuple[Step, ...]:
        """Return the steps that evaluate: the job, after predictions where those are scored.

        Where another job decides, they end well although an evaluation failed. What follows waits
        for the last one.
        """
        scoring = replace(self._call(f"{prefix}.job"), may_fail=self.stage.decided_by_job)
        predicting = self.predicting()
        return (scoring,) if predicting is None else predicting.around(prefix, scoring)

    def predicting(self) -> Predicting | None:
        """Return what makes the predictions, if such are scored."""
        stage, context = self.stage, self.context
        if stage.transform is None:
            return None
        if self.champion is not None:
            own, predictor = of_champion(context), self.champion
        else:
            predictor = Predictor(data=self._uri())
            own = replace(context, element=element(stage)) if stage.several else context
        return Predicting(stage, stage.transform, own, predictor, self._place_of(PREDICTIONS))

    def _call(self, step: str) -> Call:
        """Return the step that runs the job to its end."""
        stage = self.stage
        call = self.job().call(step, stage.poll_interval_s)
        machines = Candidate(known(stage.instance_type), stage.instance_count).label
        instead = fallback(machines, (), USAGE, stage.wait_for_capacity_h)
        return replace(call, fallback=instead)

    def report(self, step: str, after: str) -> Read:
        """Return the step that reads the job's report.

        A checkpoint whose metric is NaN or infinite has lost; a single model has nobody to lose to.
        """
        many = self.stage.several
        deciding = {METRIC, *(self.stage.column(name) for name in self.stage.bounded())}
        return Read(
            name=step,
            uri=self.report_uri,
            outputs={
                column: value_at(
                    self.stage.place(name),
                    kind="number",
                    not_finite="refused" if column in deciding and not many else "null",
                )
                for column, name in self.stage.measured().items()
            },
            after=(after,),
        )

    @property
    def report_uri(self) -> Expression[str]:
        """The S3 URI of the report."""
        return join(self._report_location(), "/", _REPORT)

    def job(self) -> Job:
        """Return the job."""
        stage, context = self.stage, self.context
        source = stage.source
        return Job(
            name=self._name(),
            context=context,
            image=stage.registry_path(context),
            entrypoint=stage.command if source is None else ("python3", script(source)),
            arguments=self._arguments(),
            inputs=(
                *(() if source is None else (code(source, context),)),
                read(self._input, self._read()),
                read("data", known(stage.data)),
            ),
            outputs=(written("report", self._report_location(), OUTPUT),),
            cluster={
                "InstanceCount": stage.instance_count,
                "InstanceType": stage.instance_type,
                "VolumeSizeInGB": stage.volume_gib,
            },
            max_runtime_s=stage.max_runtime_s,
            tags=context.tag_list(stage.name),
            environment=stage.environment,
            network={} if stage.vpc is None else {"VpcConfig": stage.vpc.request()},
            extra=stage.extra_request,
        )

    @property
    def _input(self) -> str:
        if self.stage.transform is not None:
            return PREDICTIONS
        return "checkpoint" if self.stage.subject == "checkpoints" else "model"

    def _read(self) -> Tree:
        return self._uri() if self.stage.transform is None else self._place_of(PREDICTIONS)

    def _uri(self) -> Tree:
        if self.champion is not None:
            return self.champion.data
        if self.stage.subject == "tuning_job":
            return field(Item(), tuned.MODEL)
        return listed_uri(self.stage) if self.stage.subject == "checkpoints" else self.stage.model

    def _arguments(self) -> Sequence[Tree]:
        return (
            *(f"--{self._input}", f"{INPUT}/{self._input}"),
            *("--data", f"{INPUT}/data"),
            *("--output", OUTPUT),
            *self.stage.arguments,
        )

    def _token(self) -> Expression[object]:
        return apply(Function.HASH, join(run_id(), "/", element(self.stage)))

    def _name(self) -> Expression[str]:
        if self.champion is not None:
            return second_name(self.stage, self.context, "champion")
        if not self.stage.several:
            return self.context.resource_name(self.stage.name)
        return join(self.context.name_prefix(self.stage.name), self._token())

    def _report_location(self) -> Expression[str]:
        if not self.stage.decided_by_job:
            location = self.context.location(self.stage.name)
            return join(location, "/", self._token()) if self.stage.several else location
        return self._place_of(REPORTS)

    def _place_of(self, folder: str) -> Expression[str]:
        """Return the S3 URI of what belongs to one evaluation in a folder of the run's place."""
        location = self.context.location(self.stage.name, folder)
        if self.champion is not None:
            return join(location, "/champion")
        return join(location, "/", self._token() if self.stage.several else "model")
