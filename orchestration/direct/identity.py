"""The identity of a run: the workflow's definition and the values of its parameters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from orchestration.errors import StartError
from orchestration.expressions import Json
from orchestration.graph import Workflow

FORMAT = 1
"""Of the journal; another one is another definition."""


def identity(workflow: Workflow, run_id: str, parameters: Mapping[str, Json]) -> dict[str, Json]:
    """Return what the journal's first object says of a run."""
    return {
        "format": FORMAT,
        "workflow": workflow.name,
        "run_id": run_id,
        "definition": _digest(workflow),
        "parameters": dict(parameters),
    }


def check_same(asked: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
    """Raise :class:`StartError` with what differs between a run and the one that goes on."""
    differences = []
    if any(asked[key] != kept.get(key) for key in ("format", "workflow", "definition")):
        differences.append("the pipeline's definition is another one")
    old = kept.get("parameters", {})
    for name, value in asked["parameters"].items():
        if name not in old or old[name] != value:
            differences.append(f"parameter {name} was {old.get(name)!r} and is {value!r}")
    if differences:
        raise StartError(
            f"run {asked['run_id']!r} of {asked['workflow']} cannot go on: "
            f"{'; '.join(differences)}. Repeat what it was started with, or start a run under "
            "another run id"
        )


def _digest(workflow: Workflow) -> str:
    definition = _plain([workflow.graph, dict(workflow.outputs)])
    return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Return a definition as JSON that is the same in every process."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return [type(value).__name__, own]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
