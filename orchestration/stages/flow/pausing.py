"""A stage that only waits: for what takes its time and says nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from typing_extensions import override

from orchestration.errors import Problem
from orchestration.expressions import All, Compare, join
from orchestration.graph import Require, Wait
from orchestration.refs import Expression
from orchestration.stages.outputs import Outputs
from orchestration.stages.stage import SAMPLE, Context, Fragment, Stage
from orchestration.stages.values import Count

LONGEST_S: Final = 30 * 86_400
"""Far below a year, the longest execution of Step Functions."""
INVALID: Final = "InvalidPause"


@dataclass(frozen=True)
class PauseOutputs:
    """A pause has no outputs; other stages name it in ``after``."""


class Pause(Stage):
    """Wait some time before the stages that name it in ``after``.

    To wait for something that can be asked for, use the ``poll`` of an ``aws_call``.
    """

    kind: Literal["pause"] = "pause"
    duration_s: Count
    """Seconds, 30 days (2,592,000) at the most."""
    outputs: ClassVar[Outputs[PauseOutputs]] = Outputs(PauseOutputs)

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        if isinstance(self.duration_s, int) and self.duration_s > LONGEST_S:
            yield Problem("duration_s", f"is {self.duration_s}; the most is {LONGEST_S} (30 days)")

    @override
    def lower(self, context: Context) -> Fragment:
        wait = Wait(name=f"{self.name}.wait", seconds=self.duration_s)
        if not isinstance(self.duration_s, Expression):
            return Fragment(steps=(wait,), outputs={})
        length = self.duration_s
        bounded = Require(
            name=f"{self.name}.bounds",
            condition=All((Compare("ge", length, 1), Compare("le", length, LONGEST_S))),
            error=INVALID,
            cause=join(
                f"stage {self.name}: duration_s is ", length, f"; it must be 1 to {LONGEST_S}"
            ),
        )
        wait = Wait(name=wait.name, seconds=length, after=(bounded.name,))
        return Fragment(steps=(bounded, wait), outputs={})
