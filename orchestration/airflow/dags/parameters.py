"""Parameters as Airflow's params, with their defaults."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import Param
from airflow.sdk.definitions._internal.mixins import ResolveMixin

from orchestration.errors import PipelineError, Problem, near
from orchestration.execution.parameters import problems
from orchestration.graph import ParameterSpec, ParameterValue

if TYPE_CHECKING:
    from airflow.sdk import Context

Default = ParameterValue


def defaults(
    parameters: Iterable[ParameterSpec],
    schedule: Mapping[str, Default],
    overrides: Mapping[str, Any],
) -> dict[str, Default | None]:
    """Return every parameter's default: of ``dag()``, of the schedule, else of the pipeline."""
    specs = {p.name: p for p in parameters}
    chosen: dict[str, Default | None] = {name: spec.default for name, spec in specs.items()}
    chosen |= {name: value for name, value in schedule.items() if name in specs}
    values = {name: value for name, value in overrides.items() if value is not None}
    unknown = [name for name in values if name not in specs]
    wrong = [f"there is no parameter {name!r}{near(name, specs)}" for name in unknown]
    known = {name: value for name, value in values.items() if name in specs}
    wrong += problems([specs[name] for name in known], known)
    if wrong:
        raise PipelineError([Problem("parameters", problem) for problem in wrong])
    return chosen | dict(overrides)


def params(
    parameters: Iterable[ParameterSpec],
    values: Mapping[str, Default | None],
    told: Collection[str] = (),
) -> dict[str, Param]:
    """Return Airflow's params; one without a value must be given when a run is started.

    Those that events tell may be null for Airflow, and are checked by the first task.
    """
    return {p.name: _param(p, values[p.name], told=p.name in told) for p in parameters}


def bound(
    parameters: Iterable[ParameterSpec], arguments: Mapping[str, Any]
) -> dict[str, Default | ResolveMixin | None]:
    """Return every parameter's value in a task group; results of earlier tasks as references."""
    specs = {p.name: p for p in parameters}
    references = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, ResolveMixin) and name in specs
    }
    literals = {name: value for name, value in arguments.items() if name not in references}
    values = defaults(specs.values(), {}, literals) | references
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise PipelineError(
            [
                Problem(f"parameters.{name}", "give it a value; it has no default")
                for name in missing
            ]
        )
    return values


def resolved(value: Any, context: Context) -> Any:
    """Return a parameter's value in a run."""
    return value.resolve(context) if isinstance(value, ResolveMixin) else value


def _param(spec: ParameterSpec, value: Default | None, *, told: bool) -> Param:
    description = spec.description or None
    if value is None and told:
        return Param(None, type=["null", spec.type], description=description)
    if value is None:
        return Param(type=spec.type, description=description)
    return Param(value, type=spec.type, description=description)
