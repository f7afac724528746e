"""Conversion of AWS responses to the JSON that a state sees."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from orchestration.backends.stepfunctions.integrations.spelling import spelled


def iso(value: Any) -> str:
    """Write a time as the `aws-sdk` integrations do: ISO 8601, UTC, milliseconds."""
    if not isinstance(value, datetime.datetime):
        return str(value)
    utc = value.astimezone(datetime.UTC)
    return utc.strftime("%Y-%m-%dT%H:%M:%S.") + f"{utc.microsecond // 1000:03d}Z"


def milliseconds(value: datetime.datetime) -> int:
    """Write a time as the optimised SageMaker integration does: milliseconds since 1970."""
    return int(value.timestamp() * 1000)


def json_value(value: Any, *, time: Any = iso) -> Any:
    """Convert a botocore response to JSON: times by `time`, streams and bytes as text."""
    if isinstance(value, datetime.datetime):
        return time(value)
    if isinstance(value, Mapping):
        return {key: json_value(item, time=time) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item, time=time) for item in value]
    if hasattr(value, "read"):
        value = value.read()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value


def to_member_names(value: Any, shape: Any) -> Any:
    """Rename the fields of a request to the API's own: a state writes `StateMachineArn`.

    The keys of maps stay: they are not fields.
    """
    return _renamed(value, shape, lambda names: {here: api for api, here in names.items()})


def from_member_names(value: Any, shape: Any) -> Any:
    """Rename the fields of a response from the API's own."""
    return _renamed(value, shape, lambda names: names)


def _renamed(value: Any, shape: Any, way: Callable[[dict[str, str]], dict[str, str]]) -> Any:
    if shape is None:
        return value
    if shape.type_name == "structure" and isinstance(value, Mapping):
        names, members = names_of_fields(shape), shape.members
        renamed = way(names)
        inner = {here: members[api] for api, here in names.items()} | dict(members)
        return {
            renamed.get(key, key): _renamed(item, inner.get(key), way)
            for key, item in value.items()
        }
    if shape.type_name == "list" and isinstance(value, list):
        return [_renamed(item, shape.member, way) for item in value]
    if shape.type_name == "map" and isinstance(value, Mapping):
        return {key: _renamed(item, shape.value, way) for key, item in value.items()}
    return value


def names_of_fields(shape: Any) -> dict[str, str]:
    """Return the names of a structure's fields in definitions, by the API's own."""
    return {name: spelled(name, shape.name) for name in shape.members}
