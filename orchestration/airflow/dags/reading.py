"""The specification of a pipeline, however it is given."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.backends.airflow import locking
from orchestration.backends.airflow.spec import DagSpec
from orchestration.graph import Workflow

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline
    from orchestration.stages.kinds import StageSource

_log = logging.getLogger(__name__)


def specification(
    pipeline: Pipeline | Workflow | str | Path, folder: Path, stages: Iterable[StageSource] = ()
) -> DagSpec:
    """Return the specification of a pipeline, given as an object or as a path from a folder.

    That of a file comes from its lock file, and is rendered only where that one is stale; only then
    are the modules of further kinds of stages imported.
    """
    if isinstance(pipeline, str | Path):
        path = folder / pipeline
        match locking.specification(path):
            case DagSpec() as spec:
                return spec
            case locking.Stale(reason):
                _log.warning(
                    "%s; %s is rendered at each parse, which takes longer. "
                    "Run `orchestrate lock %s`",
                    reason,
                    path.name,
                    path,
                )
        from orchestration.pipeline import Pipeline as PipelineClass

        pipeline = PipelineClass.load(path, stages=stages)
    from orchestration.backends.airflow.rendering import render

    return render(pipeline if isinstance(pipeline, Workflow) else pipeline.lower())
