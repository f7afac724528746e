"""Topics of SNS, as a pipeline names them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias

from pydantic import BeforeValidator, WithJsonSchema

from orchestration.refs import Expression

_MOST: Final = 5
"""Targets of one rule: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html"""
_TOPIC: Final = r"^arn:aws(-[a-z]+)*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}$"


def _topics(value: object) -> tuple[str, ...]:
    topics = value if isinstance(value, list | tuple) else (value,)
    if not 1 <= len(topics) <= _MOST:
        raise ValueError(f"expected 1 to {_MOST} topics, got {len(topics)}")
    if len(set(map(repr, topics))) < len(topics):
        raise ValueError("names a topic twice")
    return tuple(map(_topic, topics))


def _topic(value: object) -> str:
    if isinstance(value, Mapping | Expression):
        raise ValueError(
            f"expected the ARN of a topic, got {value!r}: what publishes on Step Functions is made "
            "when the pipeline is deployed, before any run has parameters"
        )
    if isinstance(value, str) and value.endswith(".fifo"):
        raise ValueError(
            f"{value} is a FIFO topic, and EventBridge delivers to standard ones; name one of those"
        )
    if not isinstance(value, str) or re.fullmatch(_TOPIC, value) is None:
        raise ValueError(f"expected arn:aws:sns:<region>:<account>:<topic>, got {value!r}")
    return value


_ONE: Final = {"type": "string", "pattern": _TOPIC}
TopicArns: TypeAlias = Annotated[
    tuple[str, ...],
    BeforeValidator(_topics),
    WithJsonSchema(
        {"anyOf": [_ONE, {"type": "array", "items": _ONE, "minItems": 1, "maxItems": _MOST}]}
    ),
]
"""One ARN of a topic, or several."""
