"""The outputs of an evaluation: those of every one, and one for each further metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from typing_extensions import override

from orchestration.refs import Ref
from orchestration.stages.outputs import Outputs, output

BEST: Final = "best_"
"""The beginning of the outputs of further metrics."""


_NO_JOB: Final = "give it a report: {}"
_NO_CHAMPION: Final = "give it a champion"


def _decided(stage: Any) -> bool:
    return bool(stage.decided_by_job)


def _compared(stage: Any) -> bool:
    return stage.champion is not None


def _judged(stage: Any) -> object:
    """Return the reference to the model that is judged, where it is known."""
    job = stage.training_job if stage.tuning_job is None else stage.tuning_job
    return Ref[str](job.stage, "model_artifacts") if isinstance(job, Ref) else stage.model


@dataclass(frozen=True, slots=True)
class CheckpointEvaluationOutputs:
    """References to what a :class:`CheckpointEvaluation` gives."""

    best_checkpoint: Ref[str] = output(
        exists=lambda stage: stage.subject == "checkpoints",
        otherwise="it evaluates one model; refer to its output model",
        shown=True,
        archive=False,
    )
    """S3 URI of the best checkpoint's directory; null where none keeps the bounds."""
    model: Ref[str] = output(
        exists=lambda stage: stage.subject != "checkpoints",
        otherwise="it evaluates checkpoints; refer to its output best_checkpoint",
        shown=True,
        repeats=_judged,
    )
    """S3 URI of the model that was evaluated, or that the training job has written; of a tuning
    job's, the best, null where none keeps the bounds."""
    best_training_job: Ref[str] = output(
        exists=lambda stage: stage.subject == "tuning_job",
        otherwise="only an evaluation of a tuning_job has it",
        shown=True,
    )
    """Name of the training job that wrote the best model."""
    best_metric: Ref[float] = output(shown=True)
    """The metric that decides, of the best checkpoint or of the model."""
    passed: Ref[bool] = output(shown=True)
    """True if the threshold is met, the bounds are kept and the champion is beaten, or if there are
    none."""
    results: Ref[list[dict[str, object]]] = output(
        exists=lambda stage: not stage.decided_by_job,
        otherwise="they are in report.json, beside its output report",
        shown=True,
    )
    """``checkpoint`` (or ``model``, or ``training_job``, or both), ``metric`` and the further
    metrics of every checkpoint, in the order of their names, or every model of a tuning job, the
    best by its objective first; a metric that is NaN or infinite is null."""

    outcome: Ref[str] = output(exists=_decided, otherwise=_NO_JOB, shown=True)
    """``promoted``, ``champion_kept``, ``below_threshold``, ``bounds_missed`` or
    ``no_checkpoint``."""
    explanation: Ref[str] = output(exists=_decided, otherwise=_NO_JOB, shown=True)
    """The reason of the outcome, for people."""
    report: Ref[str] = output(exists=_decided, otherwise=_NO_JOB, shown=True)
    """S3 URI of the page about the decision; ``report.json`` lies beside it."""
    report_link: Ref[str] = output(exists=_decided, otherwise=_NO_JOB, shown=True)
    """Address of the page in S3's console."""
    report_data: Ref[str] = output(exists=_decided, otherwise=_NO_JOB)
    """S3 URI of the same as JSON, which a registered model can be given."""
    champion: Ref[str] = output(exists=_compared, otherwise=_NO_CHAMPION, shown=True)
    """S3 URI of the model in use; null where there is none yet."""
    champion_metric: Ref[float] = output(exists=_compared, otherwise=_NO_CHAMPION, shown=True)
    improvement: Ref[float] = output(exists=_compared, otherwise=_NO_CHAMPION, shown=True)
    """Of the best over the champion: positive is better, whatever the direction."""
    interval_low: Ref[float] = output(exists=_compared, otherwise=_NO_CHAMPION, shown=True)
    """The lower end of the interval around it; null without scores of single examples."""
    interval_high: Ref[float] = output(exists=_compared, otherwise=_NO_CHAMPION, shown=True)

    def __getattr__(self, name: str) -> Ref[float]:
        """Return the reference to a further metric: ``evaluate.outputs.best_latency_ms``."""
        if name.startswith(BEST):
            return Ref(self.passed.stage, name)
        raise AttributeError(f"an evaluation has no output {name!r}")


class EvaluationOutputs(Outputs[CheckpointEvaluationOutputs]):
    """The outputs of evaluations, with one for each of the ``metrics``."""

    @override
    def of(self, stage: object) -> tuple[str, ...]:
        return (*super().of(stage), *further(stage))

    @override
    def shown(self, stage: object) -> tuple[str, ...]:
        own = (name for name in super().of(stage) if self._described[name].shown(stage))
        return (*own, *further(stage))

    @override
    def written(self, stage: object) -> tuple[str, ...]:
        return ()

    @override
    def kind_of(self, stage: object, name: str) -> Any:
        return "number" if name in further(stage) else super().kind_of(stage, name)

    @override
    def unreadable(self, name: str) -> str:
        return super().unreadable(name) if name in self._described else ""


def further(stage: object) -> tuple[str, ...]:
    """Return the outputs that are further metrics."""
    metrics: dict[str, object] = getattr(stage, "metrics", {})
    return tuple(f"{BEST}{name}" for name in metrics)
