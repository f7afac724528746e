"""A stage that ends the run as failed: with a condition, the guard of what follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from pydantic import Field
from typing_extensions import override

from orchestration import graph
from orchestration.errors import Problem
from orchestration.stages.outputs import Outputs
from orchestration.stages.stage import SAMPLE, Context, Fragment, Stage
from orchestration.stages.values import Text

FAILED: Final = "RunRefused"
"""The error's name, where the stage gives none."""


@dataclass(frozen=True)
class FailOutputs:
    """Nothing follows a failed run, so there are no outputs."""


class Fail(Stage):
    """Fails the run where its condition holds, with an error and a cause of yours.

    Stages that name it in ``after`` run where the condition does not hold, and not where it does.
    Stages that run beside it run to their end, and are paid for.
    """

    kind: Literal["fail"] = "fail"
    cause: Text
    """Words for people: ``{join: ["only ", {ref: prepare.rows}, " rows"]}``."""
    error: str = Field(default=FAILED, pattern=r"^[A-Za-z][A-Za-z0-9_.]*$", max_length=128)
    """A name for programs: ``TooFewRows``."""
    outputs: ClassVar[Outputs[FailOutputs]] = Outputs(FailOutputs)

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        if self.when is None:
            example = "when: {less: [{ref: prepare.rows}, 1000]}"
            yield Problem("when", f"is needed, else every run fails; {example}")

    @override
    def lower(self, context: Context) -> Fragment:
        step = graph.Fail(name=f"{self.name}.fail", error=self.error, cause=self.cause)
        return Fragment(steps=(step,), outputs={})
