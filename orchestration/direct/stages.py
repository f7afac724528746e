"""The states of a run's stages, from those of its steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal

from orchestration.direct.progress import StepRun
from orchestration.expressions import Json

RunState = Literal["running", "succeeded", "failed"]
StageState = Literal["waiting", "running", "succeeded", "failed", "skipped", "not reached"]

_UNBEGUN: Final[Mapping[RunState, StageState]] = {
    "running": "waiting",
    "succeeded": "skipped",
    "failed": "not reached",
}


def own_steps(stage: str, steps: Iterable[StepRun]) -> list[StepRun]:
    """Return the steps of a stage that only run if the stage does."""
    return [step for step in steps if is_own(stage, step.step)]


def is_own(stage: str, step: str) -> bool:
    """Return whether a step is one of a stage that only runs if the stage does."""
    # The choice whether the stage runs is made, and its outputs are collected, in any case. What
    # guards a file system holds the stages that read it, and ends as they do.
    own = step.partition(".")[0] == stage and not step.startswith(f"{stage}.when")
    return own and step != f"{stage}.guard"


def stage_state(
    stage: str,
    steps: Iterable[StepRun],
    run: RunState,
    outputs: Mapping[str, Json] | None = None,
    *,
    to_come: Collection[str] = (),
) -> StageState:
    """Return the state of a stage; ``outputs`` are those of the run, by stage.

    ``to_come``: steps that have not begun, and still will.
    """
    known = tuple(steps)
    own = own_steps(stage, known)
    goes_on = run == "running" and any(is_own(stage, step) for step in to_come)
    if not goes_on and (_is_skipped(stage, known, own) or _is_absent(stage, outputs)):
        return "skipped"
    states = {step.state for step in own}
    if "failed" in states:
        return "failed"
    if "running" in states:
        return "running" if run == "running" else "failed"
    if "succeeded" in states:
        return "running" if goes_on else "succeeded"
    if "skipped" in states and not goes_on:
        return "skipped"
    return _UNBEGUN[run]


def _is_skipped(stage: str, steps: Iterable[StepRun], own: Iterable[StepRun]) -> bool:
    """Return whether a stage's condition was looked at, and did not hold."""
    asked = any(s.step == f"{stage}.when" and s.state == "succeeded" for s in steps)
    return asked and not list(own)


def _is_absent(stage: str, outputs: Mapping[str, Json] | None) -> bool:
    """Return whether a run that ended well shows no output of a stage that has some."""
    shown = (outputs or {}).get(stage)
    if not isinstance(shown, Mapping) or not shown:
        return False
    return all(value is None for value in shown.values())
