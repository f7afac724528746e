"""Gates: a number that a job has measured, held against a threshold."""

from __future__ import annotations

from typing import Literal, cast

from orchestration.expressions import Compare, Function, Tree, apply, join
from orchestration.graph import Require
from orchestration.refs import Expression
from orchestration.stages.stage import Gate
from orchestration.stages.values import Model

Direction = Literal["max", "min"]


class Threshold(Model):
    """The number that the best checkpoint, or a report, must reach for the pipeline to go on."""

    value: float
    """At least this where the direction is ``max``, at most this where it is ``min``."""
    on_miss: Literal["fail", "stop"] = "fail"
    """``fail``: the run fails with ``BelowThreshold``. ``stop``: it ends well, and what depends on
    the stage does not happen; the output ``passed`` says which it was."""

    def gate(self, measured: Tree, direction: Direction) -> Gate:
        """Return the gate that a measured number has to pass."""
        op: Literal["ge", "le"] = "ge" if direction == "max" else "le"
        return Gate(Compare(op, measured, self.value), self.on_miss)

    def stopper(
        self, step: str, measured: Tree, direction: Direction, *, what: str, after: str
    ) -> Require:
        """Return the step that fails the run where ``what`` does not pass."""
        needed = "at least" if direction == "max" else "at most"
        cause = join(
            f"{what} is ",
            cast("Expression[object]", measured),
            f"; it must be {needed} ",
            apply(Function.TEXT, self.value),
        )
        return Require(
            name=step,
            condition=self.gate(measured, direction).condition,
            error="BelowThreshold",
            cause=cause,
            after=(after,),
        )
