"""A pipeline's settings for tasks as the arguments that Airflow's operators take."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any, cast

from airflow.sdk import Asset

from orchestration.backends.airflow.options import CALLBACKS, OUTLETS, SECONDS
from orchestration.errors import PipelineError, Problem


def task_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a task, without its outlets; imports its callbacks."""
    arguments: dict[str, Any] = {}
    for name, value in options.items():
        if name in SECONDS:
            arguments[SECONDS[name]] = timedelta(seconds=value)
        elif name in CALLBACKS:
            arguments[name] = [_imported(name, dotted) for dotted in value]
        elif name != OUTLETS:
            arguments[name] = value
    return arguments


def outlets(options: Mapping[str, Any]) -> list[Asset]:
    """Return the assets that a task updates."""
    return [Asset(name) for name in cast("list[str]", options.get(OUTLETS, []))]


def _imported(setting: str, dotted: str) -> Any:
    module, _, name = dotted.rpartition(".")
    try:
        value = getattr(import_module(module), name)
    except (AttributeError, ImportError) as error:
        message = f"{dotted} can't be imported: {error}; it must be importable where DAGs are read"
        raise PipelineError([Problem(f"airflow.{setting}", message)]) from error
    if not callable(value):
        raise PipelineError([Problem(f"airflow.{setting}", f"{dotted} is not callable")])
    return value
