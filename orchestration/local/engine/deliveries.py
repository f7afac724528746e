"""Deliveries of EventBridge: the targets of rules, and what each receives by its template.

EventBridge drops what a topic or Step Functions refuses, and says so in a metric only; so does
this. A template's values stand in it as AWS was recorded to insert them by LocalStack's tests of
input transformers (``tests/aws/services/events/test_events_inputs.snapshot.json``): a missing one
is empty text. Texts are not escaped, as the documentation says, so that one with a quotation mark
or a line break in it leaves no JSON; such a message is not delivered, nor is one that a missing
value outside of quotation marks has left no JSON: assumed.
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from orchestration.local.account import roles
from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject
from orchestration.local.engine.tasks.clients import client, enforced, installed

_log = logging.getLogger(__name__)
_SERVICE: Final = "events.amazonaws.com"
_PARTS: Final = re.compile(r'(<[\w.-]+>|\\.|")')


def dispatch(event: JsonObject) -> None:
    """Deliver an event to the state machines and topics that rules name, without waiting."""
    later([target for target in _targets(event) if delivered(target)], event)


def later(targets: Sequence[JsonObject], event: JsonObject) -> None:
    """Deliver an event to targets, behind the response to the request at hand."""

    def work() -> None:
        for target in targets:
            deliver(target, event)

    if targets:
        # A target's execution starts by a request to this very server.
        threading.Thread(target=work, daemon=True).start()


def delivered(target: JsonObject) -> bool:
    """Return whether a target's events are delivered here; moto delivers to queues and logs."""
    return ":sns:" in target["Arn"] or ":stateMachine:" in target["Arn"]


def deliver(target: JsonObject, event: JsonObject) -> None:
    """Deliver an event to a state machine or a topic."""
    if ":sns:" in target["Arn"]:
        _publish(target, event)
        return
    message = message_of(target, event)
    if message is not None:
        start(target, message, _SERVICE)


def start(target: JsonObject, message: str, service: str) -> None:
    """Start an execution of a target as its role, if the state machine exists and the role may.

    Where IAM is enforced, the role must let the service assume it, too.
    """
    from botocore.exceptions import ClientError

    if not installed():
        return
    machine_arn, role = target["Arn"], target.get("RoleArn", "")
    if enforced() and not (role and roles.trusts(role, service)):
        _log.error("not delivered to %s: role %s does not trust %s", machine_arn, role, service)
        return
    states = client("stepfunctions", machine_arn.split(":")[3], role)
    try:
        states.start_execution(stateMachineArn=machine_arn, input=message)
    except ClientError as error:
        _log.error("not delivered to %s: %s", machine_arn, error)


def _targets(event: JsonObject) -> Iterator[JsonObject]:
    models = sys.modules.get("moto.events.models")
    if models is None:
        # Loaded with the first request, so there is no rule.
        return
    backend = models.events_backends[ACCOUNT_ID][event["region"]]
    for rule in list(backend.describe_event_bus("default").rules.values()):
        if matches(rule, event):
            yield from rule.targets


def matches(rule: Any, event: JsonObject) -> bool:
    """Return whether a rule is about an event; one with a schedule is about none."""
    pattern = rule.event_pattern
    return bool(rule.state == "ENABLED" and pattern.get_pattern() and pattern.matches_event(event))


def _publish(target: JsonObject, event: JsonObject) -> None:
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
    if isinstance(value, str):
        return value if quoted else f'"{value}"'
    text = json.dumps(value, ensure_ascii=False)
    return text.replace('"', "") if quoted else text


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
