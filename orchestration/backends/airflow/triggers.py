"""Values that a run on Airflow gets from its event, those of EventBridge's template."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchestration.graph import ParameterSpec, TriggerSpec

RUN: Final = "orchestration:run"
"""The key beside a run's parameters that names the run after its event."""
_FIELD: Final = re.compile(r"<([^<>]+)>")


def values_of(
    trigger: TriggerSpec, event: Mapping[str, Any], parameters: Sequence[ParameterSpec]
) -> dict[str, Any]:
    """Return the values of parameters; one whose field is missing or null in the event is null.

    A parameter that is text gets a number as text, as from EventBridge.
    """
    types = {parameter.name: parameter.type for parameter in parameters}
    return {
        name: _filled(text, event, as_text=types.get(name, "string") == "string")
        for name, text in trigger.values.items()
    }


def _filled(text: str, event: Mapping[str, Any], *, as_text: bool) -> Any:
    whole = _FIELD.fullmatch(text)
    if whole is not None and not as_text:
        return _at(event, whole[1])
    fields = [_at(event, path) for path in _FIELD.findall(text)]
    if any(value is None for value in fields):
        return None
    return _FIELD.sub(lambda match: _written(_at(event, match[1])), text)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _at(event: Any, path: str) -> Any:
    for name in path.split("."):
        event = event.get(name) if isinstance(event, Mapping) else None
    return event


def message(extra: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the event of EventBridge that an asset's watcher found in a queue of SQS."""
    payload = extra.get("payload")
    if not isinstance(payload, Mapping):
        return None
    for each in payload.get("message_batch") or ():
        body = json.loads(each["Body"])
        return body if isinstance(body, Mapping) else None
    return None
