"""The cost of a run beside its jobs, from its progress."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestration.direct.stages import own_steps, stage_state
from orchestration.pricing.acquired import acquired, deploying, standing, stood

if TYPE_CHECKING:
    from orchestration.direct.progress import StepRun
    from orchestration.direct.stages import StageState
    from orchestration.graph import Workflow
    from orchestration.pricing import Line
    from orchestration.runs.progress import Progress


@dataclass(frozen=True, slots=True)
class Besides:
    """The file systems and endpoints of a run, until now or its end."""

    lines: tuple[Line, ...]
    doubtful: tuple[str, ...]
    """Stages that have failed and whose endpoint may stand all the same."""


def besides(
    workflow: Workflow,
    stages: Collection[str],
    progress: Progress,
    *,
    region: str,
    now: datetime.datetime,
) -> Besides:
    """Return what a run has acquired beside its jobs, and has not deleted so far."""
    at = progress.ended or now
    # What was not deleted is still there.
    spans = {
        step.step: (step.started, step.ended if step.state == "succeeded" else None)
        for step in progress.steps
    }
    states = {stage: state_of(stage, progress) for stage in stages}
    deployed = {
        stage: end
        for stage, state in states.items()
        if state == "succeeded" and (end := max(_ends(stage, progress.steps), default=None))
    }
    given = (workflow, region, progress.parameters)
    failed = {stage for stage, state in states.items() if state == "failed"}
    since = stood(workflow, progress.steps, deployed)
    return Besides(
        (*acquired(*given, spans, at), *standing(*given, since, at)),
        tuple(sorted((deploying(workflow) & failed) - since.keys())),
    )


def state_of(stage: str, progress: Progress) -> StageState:
    """Return the state of a stage of a run."""
    return stage_state(
        stage, progress.steps, progress.state, progress.outputs, to_come=progress.to_come
    )


def _ends(stage: str, steps: Collection[StepRun]) -> Iterator[datetime.datetime]:
    return (step.ended for step in own_steps(stage, steps) if step.ended is not None)
