"""Hyperparameter tuning as a SageMaker tuning job, whose best training job gives the outputs.

https://docs.aws.amazon.com/sagemaker/latest/dg/automatic-model-tuning.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, Final

from typing_extensions import override

from orchestration.errors import PipelineError, Problem
from orchestration.expressions import Compare, Function, Result, Tree, apply, join
from orchestration.graph import Adopt, Call, ErrorPattern, Operation, Output, Require, Until
from orchestration.refs import STAGE_NAME, Ref
from orchestration.stages.outputs import Outputs, output
from orchestration.stages.stage import SAMPLE, Context, Fragment
from orchestration.stages.training import checks
from orchestration.stages.tuning import rules
from orchestration.stages.tuning.fields import TuningFields
from orchestration.stages.tuning.request import request
from orchestration.stages.values import ABSENT

_PROVISIONING_S: Final = 3600
"""Seconds on top of each training job's own time: provisioning and upload."""
_LONGEST_S: Final = 30 * 86_400
"""Time limit where the number of training jobs is known only in the run."""
BEST: Final = "best_"
"""The beginning of the outputs with the best hyperparameters."""
_COUNTERS: Final = "TrainingJobStatusCounters"
_COUNTED: Final = {
    "Completed": "training jobs completed",
    "NonRetryableError": "failed",
    "RetryableError": "failed inside SageMaker",
    "Stopped": "stopped",
}


@dataclass(frozen=True, slots=True)
class TuningJobOutputs:
    """References to what a :class:`TuningJob` gives: the outputs of its best training job."""

    job_name: Ref[str] = output(shown=True)
    """The best training job."""
    model_artifacts: Ref[str] = output(
        shown=True, written=True, archive=lambda job: job.output.compression != "NONE"
    )
    """S3 URI of its ``model.tar.gz``."""
    checkpoints: Ref[str] = output(
        exists=lambda job: job.checkpoints is not None,
        otherwise="give it checkpoints: {}",
        written=True,
        archive=False,
    )
    """S3 URI of its checkpoints, as SageMaker describes the training job. Nobody could verify that
    SageMaker gives each training job of a tuning job a place of its own."""
    billable_time_s: Ref[int] = output()
    """Seconds of this one job that are paid."""
    objective: Ref[float] = output(shown=True)
    """The value of the objective."""
    tuning_job_name: Ref[str] = output(shown=True)

    def __getattr__(self, name: str) -> Ref[str]:
        """Return the reference to a tuned hyperparameter: ``tune.outputs.best_learning_rate``."""
        if name.startswith(BEST):
            return Ref(self.job_name.stage, name)
        raise AttributeError(f"a tuning job has no output {name!r}")


class _Outputs(Outputs[TuningJobOutputs]):
    """The outputs of tuning jobs, with one for each tuned hyperparameter."""

    @override
    def of(self, stage: object) -> tuple[str, ...]:
        return (*super().of(stage), *tuned(stage))

    @override
    def shown(self, stage: object) -> tuple[str, ...]:
        own = (name for name in super().of(stage) if self._described[name].shown(stage))
        return (*own, *tuned(stage))

    @override
    def written(self, stage: object) -> tuple[str, ...]:
        return tuple(name for name in super().of(stage) if self._described[name].written(stage))

    @override
    def kind_of(self, stage: object, name: str) -> Any:
        return "string" if name.startswith(BEST) else super().kind_of(stage, name)

    @override
    def unreadable(self, name: str) -> str:
        return "" if name.startswith(BEST) else super().unreadable(name)


def _counter(words: str) -> str:
    """Return what the step calls a counter: ``training_jobs_completed``."""
    return words.lower().replace(" ", "_")


def tuned(stage: object) -> dict[str, str]:
    """Return the hyperparameters that are outputs, by output: those named in snake case."""
    ranges: dict[str, object] = getattr(stage, "ranges", {})
    return {f"{BEST}{name}": name for name in ranges if STAGE_NAME.fullmatch(name)}


class TuningJob(TuningFields):
    """Many training jobs, each with other hyperparameters; the best one gives the outputs.

    It has the fields of a ``training_job``, which say how each of them is run, and those of the
    search. Each tuned hyperparameter in snake case is an output, too, as text: ``best_<name>``.
    """

    outputs: ClassVar[Outputs[Any]] = _Outputs(TuningJobOutputs)

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        broken = list(rules.problems(self, context))
        yield from broken
        try:
            request(self, context)
        except PipelineError as error:
            yield from (problem for problem in error.problems if problem not in broken)
        except ValueError as error:
            yield Problem("extra_request", str(error))

    @override
    def warnings(self) -> Iterator[Problem]:
        yield from checks.warnings(self)
        if self.cluster.groups:
            yield Problem(
                "cluster.groups",
                "it is not known whether tuning jobs take heterogeneous clusters; try it in a run "
                "that costs little",
            )

    @override
    def facts(self) -> Iterator[str]:
        yield from checks.facts(self.training())
        jobs = self._jobs
        if jobs is not None:
            hours = round(jobs * self._each_s / 3600, 1)
            yield f"up to {jobs} training jobs, {hours:g} h of its cluster at the most"

    @property
    def _jobs(self) -> int | None:
        """The training jobs at the most, where they are known before the run."""
        if self.search == "grid":
            return self.combinations
        return self.limits.jobs if isinstance(self.limits.jobs, int) else None

    @property
    def _each_s(self) -> int:
        """The seconds of a training job at the most."""
        return self.max_runtime_s if self.spot is None else self.spot.max_wait_s

    @property
    def _timeout_s(self) -> int:
        if self.limits.runtime_s is not None:
            return self.limits.runtime_s + _PROVISIONING_S
        jobs, parallel = self._jobs, self.limits.parallel
        if jobs is None or not isinstance(parallel, int):
            return _LONGEST_S
        pending = self.cluster.max_pending_s or 0
        return ceil(jobs / parallel) * (self._each_s + pending + _PROVISIONING_S)

    @override
    def lower(self, context: Context) -> Fragment:
        best = f"{self.name}.best"
        steps = (self._call(context), self._chosen(), self._described(best))
        outputs: dict[str, Tree] = {
            "job_name": Result(steps[0].name, "job_name"),
            "model_artifacts": Result(best, "model_artifacts"),
            "billable_time_s": Result(best, "billable_time_s"),
            "objective": Result(steps[0].name, "objective"),
            "tuning_job_name": Result(steps[0].name, "tuning_job_name"),
        }
        if self.checkpoints is not None:
            outputs["checkpoints"] = Result(best, "checkpoints")
        outputs |= {name: Result(steps[0].name, name) for name in tuned(self)}
        return Fragment(steps=steps, outputs=outputs)

    def _call(self, context: Context) -> Call:
        sent = request(self, context)
        named = {"HyperParameterTuningJobName": sent["HyperParameterTuningJobName"]}
        return Call(
            name=f"{self.name}.job",
            operation=Operation("sagemaker", "CreateHyperParameterTuningJob", sent),
            adopt=Adopt(
                exists=ErrorPattern("ResourceInUse"), name_field="HyperParameterTuningJobName"
            ),
            until=Until(
                poll=Operation("sagemaker", "DescribeHyperParameterTuningJob", named),
                status=("HyperParameterTuningJobStatus",),
                success=frozenset(["Completed"]),
                failure=frozenset(["Failed", "Stopped"]),
                reason=("FailureReason",),
                counts=(_COUNTERS,),
                counted=_COUNTED,
                absent=ABSENT,
                interval_s=self.poll_interval_s,
                timeout_s=self._timeout_s,
                stop=Operation("sagemaker", "StopHyperParameterTuningJob", named),
                outputs=self._results(),
            ),
        )

    def _results(self) -> dict[str, Output]:
        """Return what is read of the tuning job; nothing of a best job if there is none."""
        best = "BestTrainingJob"
        value = (best, "FinalHyperParameterTuningJobObjectiveMetric", "Value")
        return {
            "tuning_job_name": Output(("HyperParameterTuningJobName",), kind="string"),
            "job_name": Output((best, "TrainingJobName"), kind="string", default=""),
            "objective": Output(value, default=None),
            **{
                output: Output((best, "TunedHyperParameters", name), default=None)
                for output, name in tuned(self).items()
            },
            **{
                _counter(words): Output((_COUNTERS, field), default=0)
                for field, words in _COUNTED.items()
            },
        }

    def _chosen(self) -> Require:
        """Return the requirement that some training job has given the objective."""
        job = f"{self.name}.job"
        counts = [
            part
            for words in _COUNTED.values()
            for part in (", ", apply(Function.TEXT, Result(job, _counter(words))), f" {words}")
        ]
        return Require(
            name=f"{self.name}.chosen",
            condition=Compare("ne", Result(job, "job_name"), ""),
            error="NoTrainingJobCompleted",
            cause=join(
                f"no training job of stage {self.name} completed with the objective "
                f"{self.objective.metric}; ",
                *counts[1:],
            ),
            after=(job,),
        )

    def _described(self, step: str) -> Call:
        outputs = {
            "model_artifacts": Output(("ModelArtifacts", "S3ModelArtifacts"), default=None),
            "billable_time_s": Output(("BillableTimeInSeconds",), default=None),
        }
        if self.checkpoints is not None:
            outputs["checkpoints"] = Output(("CheckpointConfig", "S3Uri"), kind="string")
        named = {"TrainingJobName": Result(f"{self.name}.job", "job_name")}
        return Call(
            name=step,
            operation=Operation("sagemaker", "DescribeTrainingJob", named),
            outputs=outputs,
            after=(f"{self.name}.chosen",),
        )
