"""The topics that hear how the runs of a pipeline end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Self, TypeAlias

from pydantic import BeforeValidator, WithJsonSchema, model_validator

from orchestration.errors import Problem
from orchestration.graph import NotifySpec
from orchestration.refs import Expression
from orchestration.stages.values import Model

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


class Topics(Model):
    """The topics that hear of runs that end alike."""

    sns_topic: TopicArns
    """The ARN of a standard topic in the pipeline's region, or a list of up to five. On Step
    Functions its access policy must let ``events.amazonaws.com`` publish."""


class Notify(Model):
    """Messages about the ends of runs, best effort: a run ends as it does whoever hears of it."""

    on_failure: Topics | None = None
    """Runs that failed, timed out or were aborted."""
    on_success: Topics | None = None
    """Topics that hear of runs that succeeded."""

    @model_validator(mode="after")
    def _tells_somebody(self) -> Self:
        if self.on_failure is None and self.on_success is None:
            raise ValueError("expected on_failure, on_success or both")
        return self

    def spec(self) -> NotifySpec:
        """Return the topics as backends take them."""
        return NotifySpec(
            on_failure=() if self.on_failure is None else self.on_failure.sns_topic,
            on_success=() if self.on_success is None else self.on_success.sns_topic,
        )

    def misplaced(self, region: str | None) -> Iterator[Problem]:
        """Yield the topics outside the pipeline's region."""
        for end, topics in (("on_failure", self.on_failure), ("on_success", self.on_success)):
            for arn in () if topics is None else topics.sns_topic:
                other = arn.split(":")[3]
                if region is not None and other != region:
                    yield Problem(
                        f"notify.{end}.sns_topic",
                        f"{arn} is in {other}, and the pipeline runs in {region}; EventBridge "
                        "delivers to topics of its own region",
                    )
