"""Values of a pipeline's parameters that are known at deployment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from orchestration.deploy.account import refusal
from orchestration.errors import near
from orchestration.expressions import Json
from orchestration.graph import ParameterSpec

_BOOLEANS = {"true": True, "false": False}


def read(specs: Sequence[ParameterSpec], chosen: Mapping[str, Json]) -> dict[str, Json]:
    """Convert values to their parameters' types: ``"3"`` may be a number, ``"true"`` a boolean.

    A :class:`~orchestration.errors.DeployError` names every unknown parameter and every value that
    does not fit.
    """
    known = {spec.name: spec for spec in specs}
    values: dict[str, Json] = {}
    problems = []
    for name, value in chosen.items():
        if name not in known:
            problems.append(f"unknown parameter {name!r}{near(name, known)}")
            continue
        try:
            values[name] = _READERS[known[name].type](value)
        except (KeyError, ValueError):
            problems.append(f"parameter {name!r}: expected a {known[name].type}, got {value!r}")
    if problems:
        raise refusal("the parameters do not fit the pipeline", problems)
    return values


def with_defaults(specs: Sequence[ParameterSpec], values: Mapping[str, Json]) -> dict[str, Json]:
    """Complete the values of a run with the defaults."""
    defaults = {spec.name: spec.default for spec in specs if spec.default is not None}
    return {**defaults, **values}


def required(specs: Sequence[ParameterSpec]) -> tuple[str, ...]:
    """List the parameters without defaults."""
    return tuple(spec.name for spec in specs if spec.default is None)


def _string(value: Json) -> Json:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _number(value: Json) -> Json:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(value)
    if not isinstance(value, str):
        return value
    try:
        return int(value)
    except ValueError:
        return float(value)


def _boolean(value: Json) -> Json:
    return value if isinstance(value, bool) else _BOOLEANS[str(value).lower()]


def _array(value: Json) -> Json:
    read = json.loads(value) if isinstance(value, str) else value
    if not isinstance(read, list | tuple):
        raise ValueError(value)
    return list(read)


_READERS: dict[str, Callable[[Json], Json]] = {
    "string": _string,
    "number": _number,
    "boolean": _boolean,
    "array": _array,
}
