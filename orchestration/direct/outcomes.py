"""Outcomes: the ends of runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from orchestration import notebook
from orchestration.direct.progress import StepRun
from orchestration.expressions import Json

ABORTED = "Aborted"
"""The error of a run that its user interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a run, as the journal keeps it."""

    workflow: str
    run_id: str
    state: Literal["succeeded", "failed"]
    error: str | None = None
    cause: str | None = None
    outputs: Mapping[str, Json] | None = None
    """The outputs of the pipeline, by stage; ``None`` if it failed."""
    steps: tuple[StepRun, ...] = ()
    """The steps that were reached by the process that ended the run."""

    def _repr_html_(self) -> str:
        shown = [
            (stage, name, json.dumps(value, ensure_ascii=False))
            for stage, outputs in (self.outputs or {}).items()
            for name, value in (outputs.items() if isinstance(outputs, Mapping) else ())
        ]
        steps = [(each.step, each.state, notebook.seconds(each.duration_s)) for each in self.steps]
        return notebook.block(
            f"{self.workflow}, run {self.run_id}: {self.state}",
            notebook.line(f"{self.error}: {self.cause}") if self.error is not None else "",
            notebook.table(("step", "state", "time"), steps),
            notebook.table(("stage", "output", "value"), shown),
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "workflow": self.workflow,
            "run_id": self.run_id,
            "state": self.state,
            "error": self.error,
            "cause": self.cause,
            "outputs": self.outputs,
            "steps": [step.to_json() for step in self.steps],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Outcome:
        """Return what ``to_json`` wrote down."""
        steps = tuple(StepRun.from_json(step) for step in data["steps"])
        return cls(**{**data, "steps": steps})
