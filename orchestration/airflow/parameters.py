"""Parameters of a run: Airflow's params, and what makes an input wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Param

from orchestration.errors import PipelineError, Problem
from orchestration.graph import ParameterSpec

Default = str | float | bool


def problems_with(parameters: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> list[str]:
    """What is wrong with a run's input: unknown names, missing values, wrong types; all of it.

    ``parameters`` are objects with ``name``, ``type`` and ``required``.
    """
    known = {parameter["name"]: parameter for parameter in parameters}
    problems = [_unknown(name, known) for name in given if name not in known]
    for name, parameter in known.items():
        found = given.get(name)
        if found is None:
            if parameter["required"]:
                problems.append(f"parameter {name!r} is required")
        elif not _is(found, parameter["type"]):
            problems.append(f"parameter {name!r} is no {parameter['type']}: {found!r}")
    return problems


def defaults(
    parameters: Iterable[ParameterSpec],
    schedule: Mapping[str, Default],
    overrides: Mapping[str, Any],
) -> dict[str, Default | None]:
    """Every parameter's default: that given to ``dag()``, of the schedule, of the pipeline."""
    specs = {p.name: p for p in parameters}
    chosen: dict[str, Default | None] = {name: spec.default for name, spec in specs.items()}
    chosen |= {name: value for name, value in schedule.items() if name in specs}
    documents = [{"name": p.name, "type": p.type, "required": False} for p in specs.values()]
    problems = problems_with(documents, overrides)
    if problems:
        raise PipelineError([Problem("parameters", problem) for problem in problems])
    return chosen | dict(overrides)


def params(
    parameters: Iterable[ParameterSpec], values: Mapping[str, Default | None]
) -> dict[str, Param]:
    """Airflow's params; one without a value has to be given when a run is started."""
    return {p.name: _param(p, values[p.name]) for p in parameters}


def _param(spec: ParameterSpec, value: Default | None) -> Param:
    description = spec.description or None
    if value is None:
        return Param(type=spec.type, description=description)
    return Param(value, type=spec.type, description=description)


def _unknown(name: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"there is no parameter {name!r}{hint}"


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case _:
            return False
