"""Runs a workflow directly, from this process, on the embedded AWS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchestration.direct import perform
from orchestration.direct.progress import OnProgress
from orchestration.expressions import Json
from orchestration.graph import Workflow
from orchestration.local.run.report import Followed

if TYPE_CHECKING:
    from orchestration.local.server.embedded import EmbeddedAws


def follow(
    aws: EmbeddedAws,
    workflow: Workflow,
    values: Mapping[str, Json],
    run_id: str,
    on_progress: OnProgress,
    *,
    workspace: str,
) -> Followed:
    """Run the workflow once, or go on with the run of this id, and follow it to its end."""
    outcome = perform(
        workflow,
        values,
        session=aws,
        run_id=run_id,
        workspace=workspace,
        on_progress=on_progress,
        time_scale=aws.time_scale,
    )
    return Followed(
        identity=f"{workflow.name}/{run_id}",
        state=outcome.state,
        error=outcome.error,
        cause=outcome.cause,
        outputs=outcome.outputs,
        steps=outcome.steps,
    )
