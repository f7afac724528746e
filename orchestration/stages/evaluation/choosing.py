"""The choice of the best, and the steps that end a run in which none is good enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from orchestration.expressions import All, Best, Compare, Function, Result, Tree, apply, field, join
from orchestration.graph import Choose, Graph, Require, Step
from orchestration.refs import Expression
from orchestration.stages.evaluation import tuned
from orchestration.stages.evaluation.fields import METRIC, EvaluationFields
from orchestration.stages.evaluation.outputs import BEST
from orchestration.stages.processing.gate import gate
from orchestration.stages.stage import Fragment

CONSTRAINT_NOT_MET: Final = "ConstraintNotMet"
"""The error of a run in which nothing keeps the bounds of all metrics."""


@dataclass(frozen=True)
class Choice:
    """The values of the best, and the steps after which they can be read."""

    steps: tuple[Step, ...]
    values: Mapping[str, Tree]
    """By their names in ``results``."""
    passed: Expression[bool] | None
    """True if the best is good enough; ``None``: it is wherever this is read."""
    last: str
    """The step that the gate waits for."""


def fragment(
    stage: EvaluationFields, steps: Sequence[Step], choice: Choice, outputs: Mapping[str, Tree]
) -> Fragment:
    """Return the stage as steps, with its gate; ``outputs`` are those that are no metrics."""
    metric, threshold = choice.values[METRIC], stage.threshold
    gates: tuple[Step, ...] = ()
    if threshold is not None and stage.miss == "fail":
        what = f"{stage.metric} of stage {stage.name}"
        if stage.several:
            what = f"stage {stage.name}: the best {stage.noun}'s {stage.metric}"
        uri = choice.values.get("checkpoint", choice.values.get(tuned.MODEL, stage.model))
        name = f"{stage.name}.gate"
        stopper = threshold.stopper(
            name, metric, stage.direction, what=what, after=choice.last, of=uri
        )
        [condition] = _reached(stage, metric)
        gates = (replace(stopper, condition=condition),)
    passed = choice.passed
    return Fragment(
        steps=(*steps, *choice.steps, *gates),
        outputs={
            **outputs,
            "best_metric": metric,
            "passed": True if passed is None else passed,
            **{f"{BEST}{name}": choice.values[stage.column(name)] for name in stage.metrics},
        },
        gate=None if passed is None else gate(passed, stage.miss),
    )


def _reached(stage: EvaluationFields, metric: Tree) -> tuple[Expression[bool], ...]:
    """Return the condition of the threshold, if there is one."""
    if stage.threshold is None:
        return ()
    threshold = stage.threshold.model_copy(update={"value": stage.bound(stage.threshold.value)})
    return (threshold.reached(metric, stage.direction),)


def _all(conditions: Sequence[Expression[bool]]) -> Expression[bool] | None:
    return All(tuple(conditions)) if len(conditions) > 1 else next(iter(conditions), None)


@dataclass(frozen=True)
class Many:
    """The choice among several: the best of those that keep all bounds, the first of equals."""

    stage: EvaluationFields
    rows: Expression[object]

    def choice(self) -> Choice:
        """Return the best, and what fails a run in which there is none."""
        stage, finite = self.stage, self._finite()
        if stage.bounded() and stage.miss != "fail":
            chosen = self._chosen(finite.name)
            results: dict[str, Tree] = {n: Result(chosen.name, n) for n in self._columns}
            passed = Compare("eq", Result(chosen.name, "passed"), True)
            return Choice((finite, chosen), results, passed, chosen.name)
        values = self._values(self._keeping)
        steps = (finite, self._kept(finite.name)) if stage.bounded() else (finite,)
        return Choice(steps, values, _all(_reached(stage, values[METRIC])), steps[-1].name)

    @property
    def _columns(self) -> tuple[str, ...]:
        own = ("checkpoint",) if self.stage.subject == "checkpoints" else (tuned.JOB, tuned.MODEL)
        return (*own, *self.stage.measured())

    @property
    def _measured(self) -> Expression[object]:
        return apply(Function.NUMBERED, self.rows, METRIC)

    @property
    def _keeping(self) -> Expression[object]:
        rows = self._measured
        for name, metric in self.stage.bounded().items():
            for op, _, bound in metric.bounds:
                rows = apply(Function.WHERE, rows, self.stage.column(name), op, bound)
        return rows

    def _values(self, rows: Expression[object]) -> dict[str, Tree]:
        best = Best(rows, METRIC, self.stage.direction)
        return {name: field(best, name) for name in self._columns}

    def _finite(self) -> Require:
        """A checkpoint that diverged has lost; where all have, there is nothing to go on with."""
        stage = self.stage
        cause = f"stage {stage.name}: {stage.metric} is NaN or infinite for every {stage.noun}"
        return Require(
            name=f"{stage.name}.finite",
            condition=Compare("gt", apply(Function.COUNT, self._measured), 0),
            error="MetricNotFinite",
            cause=cause,
        )

    def _any_keeps(self) -> Expression[bool]:
        return Compare("gt", apply(Function.COUNT, self._keeping), 0)

    def _kept(self, after: str) -> Require:
        wanted = ", ".join(
            f"{name} {words} {bound:.15g}"
            for name, metric in self.stage.bounded().items()
            for _, words, bound in metric.bounds
        )
        return Require(
            name=f"{self.stage.name}.constraints",
            condition=self._any_keeps(),
            error=CONSTRAINT_NOT_MET,
            cause=join(
                f"stage {self.stage.name}: no {self.stage.noun} of ",
                apply(Function.COUNT, self.rows),
                f" has {wanted}",
            ),
            after=(after,),
        )

    def _chosen(self, after: str) -> Choose:
        """Return the choice that is nothing where no checkpoint keeps the bounds."""
        values = self._values(self._keeping)
        passed = _all(_reached(self.stage, values[METRIC]))
        return Choose(
            name=f"{self.stage.name}.chosen",
            condition=self._any_keeps(),
            then=Graph(),
            otherwise=Graph(),
            collect={**values, "passed": True if passed is None else passed},
            absent={**dict.fromkeys(self._columns), "passed": False},
            after=(after,),
        )


def single(stage: EvaluationFields, values: Mapping[str, Tree], after: str) -> Choice:
    """Return the one model that there is, and what fails a run in which it keeps no bounds."""
    bounds = [
        (name, values[stage.column(name)], bound)
        for name, metric in stage.bounded().items()
        for bound in metric.bounds
    ]
    kept = tuple(Compare(op, value, stage.bound(bound)) for _, value, (op, _, bound) in bounds)
    reached = _reached(stage, values[METRIC])
    if stage.miss != "fail" or not bounds:
        return Choice((), values, _all((*kept, *reached)), after)
    cause: list[str | Expression[object]] = [f"stage {stage.name}: "]
    for number, (name, value, (_, words, bound)) in enumerate(bounds):
        start = "; " if number else ""
        cause += [f"{start}{name} is ", apply(Function.TEXT, value)]
        cause.append(f" and must be {words} {bound:.15g}")
    required = Require(
        name=f"{stage.name}.constraints",
        condition=All(kept),
        error=CONSTRAINT_NOT_MET,
        cause=join(*cause),
        after=(after,),
    )
    return Choice((required,), values, _all(reached), required.name)
