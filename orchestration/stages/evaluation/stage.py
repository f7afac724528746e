"""Evaluation of checkpoints, a final model, a tuning job's best ones, or training metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from typing_extensions import override

from orchestration.errors import PipelineError, Problem
from orchestration.expressions import All, Compare, Function, Item, Result, Tree, apply, field, join
from orchestration.graph import Call, ForEach, Graph, Operation, Output, Require, Step
from orchestration.refs import Expression
from orchestration.stages.evaluation import recorded, rules, training_metrics, tuned
from orchestration.stages.evaluation.champion import Looking
from orchestration.stages.evaluation.choosing import Many, fragment, single
from orchestration.stages.evaluation.fields import EvaluationFields, known
from orchestration.stages.evaluation.jobs import Evaluating, listed_uri
from orchestration.stages.evaluation.outputs import (
    CheckpointEvaluationOutputs,
    EvaluationOutputs,
)
from orchestration.stages.evaluation.verdict import Deciding, code
from orchestration.stages.listing import not_empty, prefix_of
from orchestration.stages.outputs import Outputs
from orchestration.stages.stage import SAMPLE, Context, Fragment, Stage
from orchestration.stages.values import Source

_PAGE: Final = 1000
"""The entries of a listing that S3 gives at a time, of which some are selected."""


class CheckpointEvaluation(EvaluationFields):
    """Runs the evaluation script on every checkpoint and picks the best by one metric.

    The script is started as ``python3 <entry_point> --checkpoint DIR --data DIR --output DIR`` and
    writes ``evaluation.json`` into the output directory: ``{"metrics": {"accuracy": 0.97}}``. With
    a ``model``, it is started once, with ``--model DIR`` (which holds ``model.tar.gz``, or the
    model's files) in the place of ``--checkpoint DIR``. With a ``training_job``, nothing is
    started: the metrics are those that the job has printed. With a ``tuning_job``, it is started
    with the model of each of the best training jobs. A ``command`` in the place of the ``source``
    is a program that the container has, which is given the same arguments.

    Of several ``metrics``, one decides and the others have bounds. Of equals, the first by name is
    the best. Whatever is NaN or infinite has lost; a metric that is missing fails the run.
    """

    outputs: ClassVar[Outputs[Any]] = EvaluationOutputs(CheckpointEvaluationOutputs)

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        yield from rules.problems(self)
        evaluates = self.subject != "training_job" and self.recorded is None
        if not (evaluates or self.decided_by_job):
            return
        evaluating = Evaluating(self, context)
        predicting = evaluating.predicting()
        for problem in () if predicting is None else predicting.problems():
            yield problem.within("transform")
        try:
            if evaluates:
                evaluating.job().request()
            else:
                self._decided(context)
        except PipelineError as error:
            yield from error.problems
        except ValueError as error:
            yield Problem("extra_request", str(error))

    @override
    def check_readers(self, readers: Sequence[Stage]) -> Iterator[Problem]:
        yield from rules.read_by(self, readers)

    @override
    def check_beside(self, stages: Mapping[str, Stage]) -> Iterator[Problem]:
        yield from rules.beside(self, stages)

    @override
    def sources(self) -> Iterator[tuple[str, Source]]:
        yield from super().sources()
        if self.transform is not None and self.transform.source is not None:
            yield "transform.source", self.transform.source
        if self.decided_by_job:
            yield "report", code()

    @override
    def lower(self, context: Context) -> Fragment:
        match self.subject:
            case "checkpoints" | "tuning_job":
                return self._of_several(context)
            case "model":
                return self._of_model(context)
            case "training_job":
                return self._of_training_job(context)

    def _of_several(self, context: Context) -> Fragment:
        if self.decided_by_job:
            return self._decided(context)
        rows = Result(f"{self.name}.each", "items")
        each = self._each(context)
        if self.recorded is not None:
            each = recorded.reports(self, self._selected(), self._before)
        choice = Many(self, rows).choice()
        if self.subject == "tuning_job":
            steps, values = tuned.steps(self), choice.values
            best = {"model": values[tuned.MODEL], "best_training_job": values[tuned.JOB]}
        else:
            steps = (self._list(), self._some(), *self._measured())
            best = {"best_checkpoint": choice.values["checkpoint"]}
        return fragment(self, (*steps, each), choice, {**best, "results": rows})

    def _of_model(self, context: Context) -> Fragment:
        if self.decided_by_job:
            return self._decided(context)
        job = Evaluating(self, context)
        evaluated = job.steps(self.name)
        report = job.report(f"{self.name}.report", evaluated[-1].name)
        values: dict[str, Tree] = {
            column: Result(report.name, column) for column in self.measured()
        }
        choice = single(self, values, report.name)
        outputs: dict[str, Tree] = {
            "model": self.model,
            "results": [{"model": self.model, **values}],
        }
        return fragment(self, (*evaluated, report), choice, outputs)

    def _decided(self, context: Context) -> Fragment:
        """Return the evaluations, a failed one among them, and the job that decides."""
        evaluating, steps = Evaluating(self, context), list[Step]()
        models: dict[str, Tree] = {"model": self.model}
        if self.subject == "model":
            steps += evaluating.steps(self.name)
        elif self.subject == "training_job":
            steps += [training_metrics.described(self), *training_metrics.recorded(self)]
            uri = evaluating.report_uri
            steps.append(training_metrics.report(self, uri, steps[-1].name))
            models = {"model": training_metrics.model(self)}
        else:
            each = self._attempts(evaluating)
            if self.subject == "tuning_job":
                steps += [*tuned.steps(self), each]
                models = {"models": tuned.models(self)}
            else:
                steps += [self._list(), self._few(), *self._measured(), each]
                bucket = apply(Function.S3_BUCKET, self.checkpoints)
                models = {"bucket": bucket, "checkpoints": self._selected()}
        after = [steps[-1].name]
        champion = None
        if self.champion is not None:
            looking = Looking(self, context, self.champion)
            steps += looking.steps()
            after.append(looking.choice)
            champion = looking.model
        return Deciding(self, context, models, champion).fragment(steps, after)

    def _attempts(self, evaluating: Evaluating) -> ForEach:
        """Return the evaluations, good or bad; or copies of what training recorded."""
        if self.recorded is not None:
            return recorded.copied(self, self._selected(), evaluating.report_uri, self._before)
        return ForEach(
            name=f"{self.name}.each",
            items=self._selected(),
            body=Graph(evaluating.steps(f"{self.name}.each")),
            collect={},
            max_concurrency=self.max_concurrency,
            at_most=self._at_most,
            after=(self._before,),
        )

    def _of_training_job(self, context: Context) -> Fragment:
        if self.decided_by_job:
            return self._decided(context)
        required, values = training_metrics.recorded(self), training_metrics.values(self)
        choice = single(self, values, required[-1].name)
        outputs: dict[str, Tree] = {
            "model": training_metrics.model(self),
            "results": [{"training_job": self.training_job, **values}],
        }
        return fragment(self, (training_metrics.described(self), *required), choice, outputs)

    def _list(self) -> Call:
        return Call(
            name=f"{self.name}.list",
            operation=Operation(
                "s3",
                "ListObjectsV2",
                {
                    "Bucket": apply(Function.S3_BUCKET, self.checkpoints),
                    "Prefix": join(prefix_of(known(self.checkpoints)), self.checkpoint_prefix),
                    "Delimiter": "/",
                    "MaxKeys": self.max_checkpoints if self.select is None else _PAGE,
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

    def _selected(self) -> Expression[object]:
        """Return what is evaluated: checkpoints of those that were listed, or models."""
        if self.subject == "tuning_job":
            return tuned.models(self)
        best = None if self.select is None else self.select.best
        return self._picked() if best is None else recorded.selected(self, best)

    def _measured(self) -> tuple[Step, ...]:
        """Return the steps that look into the checkpoints, where that says which are the best."""
        if self.select is None or self.select.best is None:
            return ()
        best = self.select.best
        look = recorded.measured(self, best, self._picked())
        return (look,) if self.decided_by_job else (look, recorded.finite(self, best))

    @property
    def _before(self) -> str:
        """The name of the step after which the evaluations begin."""
        if self.subject == "tuning_job":
            return tuned.last(self)
        measured = self._measured()
        return measured[-1].name if measured else f"{self.name}.usable"

    def _picked(self) -> Expression[object]:
        """Return the checkpoints that were listed, or some of them by their names."""
        listed, select = Result(f"{self.name}.list", "found"), self.select
        if select is None:
            return listed
        return apply(Function.PICKED, listed, select.expression, select.every, select.last or 0)

    def _some(self) -> Require:
        count = apply(Function.COUNT, self._picked())
        cause = join(
            f"stage {self.name} expected 1 to {self.max_checkpoints} checkpoints below ",
            known(self.checkpoints),
            f", named {self.checkpoint_prefix}*; saw ",
            count,
        )
        more = Result(f"{self.name}.list", "truncated")
        usable = not_empty(f"{self.name}.usable", count, more, error="NoCheckpoints", cause=cause)
        return (
            usable
            if self.select is None
            else replace(usable, condition=self._few_enough(usable.condition))
        )

    def _few_enough(self, usable: Expression[bool]) -> Expression[bool]:
        """Return the condition of a list that some were selected of: it may have been longer."""
        count = apply(Function.COUNT, self._picked())
        return All((usable, Compare("le", count, self.max_checkpoints)))

    def _few(self) -> Require:
        """Return the requirement that the list is whole; it may be empty."""
        condition = Compare("eq", Result(f"{self.name}.list", "truncated"), False)
        return Require(
            name=f"{self.name}.usable",
            condition=condition if self.select is None else self._few_enough(condition),
            error="NoCheckpoints",
            cause=join(
                f"at most {self.max_checkpoints} checkpoints are wanted below ",
                known(self.checkpoints),
                f", named {self.checkpoint_prefix}*; found more",
            ),
        )

    def _each(self, context: Context) -> ForEach:
        evaluating = Evaluating(self, context)
        evaluated = evaluating.steps(f"{self.name}.each")
        report = evaluating.report(f"{self.name}.each.report", evaluated[-1].name)
        own: dict[str, Tree] = {name: field(Item(), name) for name in (tuned.JOB, tuned.MODEL)}
        if self.subject == "checkpoints":
            own = {"checkpoint": listed_uri(self)}
        return ForEach(
            name=f"{self.name}.each",
            items=self._selected(),
            body=Graph((*evaluated, report)),
            collect={
                **own,
                **{column: Result(report.name, column) for column in self.measured()},
            },
            max_concurrency=self.max_concurrency,
            at_most=self._at_most,
            after=(self._before,),
        )

    @property
    def _at_most(self) -> int | None:
        """The most elements, where a step before the loop requires no more."""
        if self.subject == "tuning_job":
            return self.best_jobs
        return None if self.select is None else self.max_checkpoints
