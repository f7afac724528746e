"""Pipelines from data of any kind that can be imported, told by its fields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from orchestration.errors import OrchestrationError, PipelineError, Problem
from orchestration.importing.imported import Imported
from orchestration.importing.renderings import from_rendering, is_dag
from orchestration.importing.sagemaker_pipelines import from_definition, is_definition
from orchestration.importing.state_machines import from_state_machine
from orchestration.importing.training_jobs import from_request
from orchestration.stages.kinds import StageSource


def from_data(
    data: Mapping[str, Any],
    *,
    name: str | None = None,
    file: str = "imported",
    stages: Iterable[StageSource] = (),
) -> Imported:
    """Return the pipeline that does what a request or a definition does.

    ``file`` names a pipeline whose definition has no name; ``stages`` are kinds of stages that a
    definition of ours may hold beside the package's own. Raises
    :class:`~orchestration.errors.PipelineError` where the data is nothing that can be imported.
    """
    try:
        return _imported(data, name, file, stages)
    except OrchestrationError:
        raise
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        text = f"has another form than AWS describes ({type(error).__name__}: {error})"
        raise PipelineError([Problem("", text)]) from error


def _imported(
    data: Mapping[str, Any], name: str | None, file: str, stages: Iterable[StageSource]
) -> Imported:
    if is_definition(data):
        return from_definition(data, name=name, file=file)
    if "StartAt" in data or is_dag(data):
        return _machine(data, name, file, stages)
    if isinstance(data.get("definition"), str) and "stateMachineArn" in data:
        file = str(data.get("name", file))
        return _machine(json.loads(data["definition"]), name, file, stages)
    return from_request(data, name=name)


def _machine(
    data: Mapping[str, Any], name: str | None, file: str, stages: Iterable[StageSource]
) -> Imported:
    """Return the pipeline that a rendering carries, or one that does the same."""
    own = from_rendering(data, stages=stages)
    if isinstance(own, Imported):
        return own if name is None else replace(own, description={**own.description, "name": name})
    if own is not None and is_dag(data):
        raise PipelineError([Problem(own.path, own.message)])
    read = from_state_machine(data, name=name, file=file)
    return read if own is None else replace(read, notes=(own, *read.notes))
