"""Pipelines from data of any kind that can be imported, told by its fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestration.errors import OrchestrationError, PipelineError, Problem
from orchestration.importing.imported import Imported
from orchestration.importing.sagemaker_pipelines import from_definition, is_definition
from orchestration.importing.state_machines import from_state_machine
from orchestration.importing.training_jobs import from_request


def from_data(
    data: Mapping[str, Any], *, name: str | None = None, file: str = "imported"
) -> Imported:
    """Return the pipeline that does what a request or a definition does.

    ``file`` names a pipeline whose definition has no name. Raises
    :class:`~orchestration.errors.PipelineError` where the data is nothing that can be imported.
    """
    try:
        return _imported(data, name, file)
    except OrchestrationError:
        raise
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        text = f"has another form than AWS describes ({type(error).__name__}: {error})"
        raise PipelineError([Problem("", text)]) from error


def _imported(data: Mapping[str, Any], name: str | None, file: str) -> Imported:
    if is_definition(data):
        return from_definition(data, name=name, file=file)
    if "StartAt" in data:
        return from_state_machine(data, name=name, file=file)
    return from_request(data, name=name)
