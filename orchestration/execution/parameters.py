"""Checks of the input of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

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
        elif parameter.uri and not names_bucket(str(value)):
            messages.append(filled(wording.PARAMETER_NOT_URI, name=name, value=value))
        elif parameter.type == "array" and (numbers := _unusable(cast("Sequence[object]", value))):
            elements = filled(wording.PARAMETER_ELEMENTS, name=name, numbers=", ".join(numbers))
            messages.append(elements)
    unknown = [name for name in values if name not in known]
    return messages + [filled(wording.PARAMETER_UNKNOWN, name=name) for name in unknown]


def _unusable(elements: Sequence[object]) -> list[str]:
    """Return the numbers of elements that no list has: neither scalars nor objects of scalars."""
    return [
        str(number)
        for number, element in enumerate(elements, start=1)
        if not all(
            isinstance(value, str | int | float)
            for value in (element.values() if isinstance(element, Mapping) else [element])
        )
    ]


def names_bucket(uri: str) -> bool:
    """Return whether a text is an S3 URI that names a bucket: ``s3://`` alone is none."""
    return uri.startswith("s3://") and uri[5:6] not in ("", "/")


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
