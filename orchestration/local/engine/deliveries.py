"""Deliveries of EventBridge to topics of SNS: the message by its template, if the topic allows it.

EventBridge drops what a topic refuses, and says so in a metric only; so does this. A template's
values stand in it as AWS was recorded to insert them by LocalStack's tests of input transformers
(``tests/aws/services/events/test_events_inputs.snapshot.json``): a missing one is empty text.
Outside of quotation marks, a missing one leaves no JSON, and is not delivered: assumed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from typing import Any, Final

from orchestration.local.account.protocol import JsonObject

_SERVICE: Final = "events.amazonaws.com"
_PARTS: Final = re.compile(r'(<[\w.-]+>|\\.|")')


def deliver(target: JsonObject, event: JsonObject) -> None:
    """Publish an event to a topic, unless the topic does not let EventBridge publish."""
    models = sys.modules.get("moto.sns.models")
    if models is None:
        # Loaded with the first request, so there is no topic.
        return
    _, _, _, region, account, _ = target["Arn"].split(":")
    topic = models.sns_backends[account][region].topics.get(target["Arn"])
    message = message_of(target, event)
    if topic is not None and message is not None and _admits(json.loads(topic.policy)):
        topic.publish(message)


def message_of(target: JsonObject, event: JsonObject) -> str | None:
    """Return what a target receives of an event; None if its template gives no JSON."""
    transformer = target.get("InputTransformer")
    if transformer is None:
        return str(target.get("Input") or json.dumps(event))
    paths = transformer.get("InputPathsMap", {})
    values = {name: _at(event, path) for name, path in paths.items()}
    message = _filled(transformer["InputTemplate"], values)
    try:
        json.loads(message)
    except ValueError:
        return None
    return message


def _filled(template: str, values: Mapping[str, Any]) -> str:
    quoted, written = False, []
    for part in _PARTS.split(template):
        if part == '"':
            quoted = not quoted
        if part.startswith("<") and part[1:-1] in values:
            part = _written(values[part[1:-1]], quoted=quoted)
        written.append(part)
    return "".join(written)


def _written(value: Any, *, quoted: bool) -> str:
    if value is _MISSING:
        return ""
    text = json.dumps(value, ensure_ascii=False)
    if not quoted:
        return text
    return text[1:-1] if isinstance(value, str) else text.replace('"', "")


_MISSING: Final = object()


def _at(event: Any, path: str) -> Any:
    """Return the value at ``$.detail.name``."""
    for name in path.removeprefix("$").strip(".").split("."):
        if not isinstance(event, Mapping) or name not in event:
            return _MISSING
        event = event[name]
    return event


def _admits(policy: JsonObject) -> bool:
    return any(
        statement["Effect"] == "Allow"
        and isinstance(statement["Principal"], dict)
        and _SERVICE in _list(statement["Principal"].get("Service", []))
        and {"sns:publish", "sns:*"} & {str(a).lower() for a in _list(statement["Action"])}
        for statement in policy.get("Statement", [])
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
