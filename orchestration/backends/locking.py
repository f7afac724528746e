"""Lock files with what their pipelines are rendered to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.backends import locks
from orchestration.errors import UnsupportedError

if TYPE_CHECKING:
    from orchestration.graph import Workflow
    from orchestration.stages.kinds import StageSource


def with_renderings(
    path: Path, content: Mapping[str, Any], *, stages: Iterable[StageSource] = ()
) -> tuple[dict[str, Any], UnsupportedError | None]:
    """Return the content of a YAML file's lock file with its DAG and its state machine.

    ``stages`` are further kinds of stages, as :meth:`~orchestration.Pipeline.load` takes them. The
    error says why there is no DAG. Raises the errors of loading the YAML.
    """
    from orchestration.backends import airflow
    from orchestration.backends.airflow.spec import to_document
    from orchestration.pipeline import Pipeline

    pipeline = Pipeline.load(path, stages=stages, lock=content)
    workflow = pipeline.lower()
    rendered: dict[locks.Section, Any] = {}
    refused = None
    try:
        rendered["airflow"] = to_document(airflow.render(workflow))
    except UnsupportedError as error:
        refused = error
    if (definition := _definition(workflow)) is not None:
        rendered["step_functions"] = definition
    return locks.with_sections(path, content, pipeline, rendered), refused


def _definition(workflow: Workflow) -> Mapping[str, Any] | None:
    """Return a state machine, where it can be had and there is nothing to say of it.

    Whoever renders another hears why, and renders it in full for that.
    """
    from orchestration.backends import stepfunctions

    if stepfunctions.warnings(workflow):
        return None
    try:
        return stepfunctions.render(workflow)
    except UnsupportedError:
        return None
