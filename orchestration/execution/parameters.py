"""Checks of the input of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestration.execution import wording
from orchestration.execution.wording import filled
from orchestration.graph import ParameterSpec


def problems(parameters: Iterable[ParameterSpec], values: Mapping[str, object]) -> list[str]:
    """Return everything that is wrong with a run's input: missing, unknown, of another type."""
    known = {parameter.name: parameter for parameter in parameters}
    messages = []
    for name, parameter in known.items():
        value = values.get(name)
        if value is None:
            if parameter.default is None:
                messages.append(filled(wording.PARAMETER_MISSING, name=name))
        elif not fits(value, parameter.type):
            messages.append(filled(wording.PARAMETER_TYPE, name=name, type=parameter.type))
        elif parameter.uri and not str(value).startswith("s3://"):
            messages.append(filled(wording.PARAMETER_NOT_URI, name=name, value=value))
    unknown = [name for name in values if name not in known]
    return messages + [filled(wording.PARAMETER_UNKNOWN, name=name) for name in unknown]


def fits(value: object, kind: str) -> bool:
    """Return whether a value is of a parameter's type: string, number, boolean or array."""
    match kind:
        case "string":
            return isinstance(value, str)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list | tuple)
        case _:
            return False
