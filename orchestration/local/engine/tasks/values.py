"""Conversion of AWS responses to the JSON that a state sees."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any, Final

_ACRONYM: Final = re.compile(r"^[A-Z]{2,}(?=[A-Z][a-z])")


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
    """Rename the members of a request to those of the API: a state writes `StateMachineArn`.

    Names in definitions are those of the AWS SDK for Java, with a capital letter: some APIs have
    lower-case ones, and `SSEKMSKeyId` is `SsekmsKeyId`.
    """
    if shape is None:
        return value
    if shape.type_name == "structure" and isinstance(value, Mapping):
        names = {java_name(name): name for name in shape.members}
        renamed = {names.get(key, key): item for key, item in value.items()}
        return {key: to_member_names(item, shape.members.get(key)) for key, item in renamed.items()}
    if shape.type_name == "list" and isinstance(value, list):
        return [to_member_names(item, shape.member) for item in value]
    if shape.type_name == "map" and isinstance(value, Mapping):
        return {key: to_member_names(item, shape.value) for key, item in value.items()}
    return value


def from_member_names(value: Any, shape: Any) -> Any:
    """Capitalise the names of a response's members."""
    if shape is None:
        return value
    if shape.type_name == "structure" and isinstance(value, Mapping):
        return {
            _capital(key): from_member_names(item, shape.members.get(key))
            for key, item in value.items()
        }
    if shape.type_name == "list" and isinstance(value, list):
        return [from_member_names(item, shape.member) for item in value]
    return value


def java_name(name: str) -> str:
    """Return a member's name in requests: an acronym at its beginning is one word."""
    return _capital(_ACRONYM.sub(lambda match: match[0].capitalize(), name))


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]
