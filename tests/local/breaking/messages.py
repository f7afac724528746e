"""Requests to SNS that break its rules, each of them once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestration.local import EmbeddedAws


def _publish(message: str, **more: Any) -> Callable[[EmbeddedAws], None]:
    def publish(aws: EmbeddedAws) -> None:
        topic = aws.client("sns").create_topic(Name="topic")["TopicArn"]
        aws.client("sns").publish(TopicArn=topic, Message=message, **more)

    return publish


_ATTRIBUTE = {"DataType": "String", "StringValue": "x" * 100}
_BYTES = {"DataType": "Binary"}

BREAKING: dict[str, Callable[[EmbeddedAws], Any]] = {
    "messages have text": _publish(""),
    "messages at most": _publish("ä" * 131_073),
    "subjects": _publish("text", Subject="one line\nand another"),
}
ALSO: dict[str, tuple[str, Callable[[EmbeddedAws], Any]]] = {
    "messages with attributes": (
        "messages at most",
        _publish("x" * 262_100, MessageAttributes={"about": _ATTRIBUTE}),
    ),
    "messages with bytes": (
        "messages at most",
        _publish("x", MessageAttributes={"about": {**_BYTES, "BinaryValue": b"\0" * 262_133}}),
    ),
    "long subjects": ("subjects", _publish("text", Subject="x" * 101)),
}
