"""The topics that hear how the runs of a pipeline end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from pydantic import model_validator

from orchestration.errors import Problem
from orchestration.graph import NotifySpec
from orchestration.stages.options.topics import TopicArns
from orchestration.stages.values import Model


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
