"""Gates: a number that a job has measured, held against a threshold."""

from __future__ import annotations

from typing import Literal, cast

from orchestration.expressions import Compare, Function, Tree, apply, join
from orchestration.graph import Require
from orchestration.refs import Expression
from orchestration.stages.stage import Gate
from orchestration.stages.values import Model

Direction = Literal["max", "min"]
Miss = Literal["fail", "stop", "go_on"]
"""The consequence of a bound that is missed."""


def gate(passed: Expression[bool], miss: Miss) -> Gate | None:
    """Return the gate of what depends on a stage, unless it decides by itself."""
    return None if miss == "go_on" else Gate(passed, miss)


class Threshold(Model):
    """The number that the best checkpoint, or a report, must reach for the pipeline to go on."""

    value: float
    """At least this where the direction is ``max``, at most this where it is ``min``."""
    on_miss: Miss = "fail"
    """``fail``: the run fails with ``BelowThreshold``. ``stop``: it ends well, and what depends on
    the stage does not happen; the output ``passed`` says which it was. ``go_on``: stages say
    themselves, in ``when``, whether they are for a miss."""

    def reached(self, measured: Tree, direction: Direction) -> Expression[bool]:
        """Return the condition that a measured number has to meet."""
        op: Literal["ge", "le"] = "ge" if direction == "max" else "le"
        return Compare(op, measured, self.value)

    def stopper(
        self,
        step: str,
        measured: Tree,
        direction: Direction,
        *,
        what: str,
        after: str,
        of: Tree = None,
    ) -> Require:
        """Return the step that fails the run where ``what`` does not pass; ``of``: its URI."""
        needed = "at least" if direction == "max" else "at most"
        cause = join(
            f"{what} is ",
            cast("Expression[object]", measured),
            *(() if of is None else (" (", cast("Expression[object]", of), ")")),
            f"; it must be {needed} ",
            apply(Function.TEXT, self.value),
        )
        return Require(
            name=step,
            condition=self.reached(measured, direction),
            error="BelowThreshold",
            cause=cause,
            after=(after,),
        )
