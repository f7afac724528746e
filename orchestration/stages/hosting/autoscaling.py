"""The number of an endpoint's instances: what it follows, and the bounds that it keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from pydantic import Field, model_validator

from orchestration.errors import Problem
from orchestration.stages.values import Model, Name, Seconds, Text


class ScheduledScaling(Model):
    """Bounds of the number of instances from a time of day or week on, until others are set.

    https://docs.aws.amazon.com/autoscaling/application/userguide/application-auto-scaling-scheduled-scaling.html
    """

    cron: str
    """Five fields: minute, hour, day of month, month, day of week: ``0 7 * * MON-FRI``."""
    timezone: str = "UTC"
    """IANA name: ``Europe/Berlin``."""
    min_instances: int | None = Field(default=None, ge=0, strict=True)
    """The fewest instances from then on; by default those of the ``autoscaling``."""
    max_instances: int | None = Field(default=None, ge=1, strict=True)
    """The most instances from then on; by default those of the ``autoscaling``."""

    @model_validator(mode="after")
    def _fires(self) -> Self:
        from orchestration.pipeline.schedules.cron import problems, zone_problems

        for problem in (*problems(self.cron), *zone_problems(self.timezone)):
            raise ValueError(f"{problem.field}: {problem.message}")
        return self

    @property
    def expression(self) -> str:
        """The schedule as AWS writes it, with six fields."""
        from orchestration.pipeline.schedules.cron import eventbridge

        return eventbridge(self.cron)


class Autoscaling(Model):
    """The number of instances follows the load, by target tracking, or the time of day.

    https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling.html
    """

    min_instances: int = Field(default=1, ge=0, strict=True)
    """The number that no decrease goes below; 0 is for ``asynchronous`` endpoints."""
    max_instances: int = Field(ge=1, strict=True)
    """The number that no increase goes above."""
    invocations_per_minute: float | None = Field(default=None, gt=0)
    """Requests to each instance in a minute that the number of instances is to lead to. Without
    it, only ``scheduled`` bounds change the number."""
    backlog_per_instance: float | None = Field(default=None, gt=0)
    """Instead, of an ``asynchronous`` endpoint: requests that wait, for each instance."""
    from_zero: bool = Field(default=False, strict=True)
    """Start the first instance as soon as a request waits and there is none: step scaling on an
    alarm on ``HasBacklogWithoutCapacity``. Without it, only more than ``backlog_per_instance``
    requests start one."""
    scheduled: dict[Name, ScheduledScaling] = Field(default={}, max_length=20)
    """Bounds from certain times on, by names: ``{morning: {cron: "0 7 * * *", min_instances: 4}}``.
    A deployment in between sets those above again, until the next of these times."""
    scale_in_cooldown_s: Seconds = 300
    """Seconds from one decrease to the next."""
    scale_out_cooldown_s: Seconds = 300
    """Seconds from one increase to the next."""

    def problems(self) -> Iterator[Problem]:
        """Yield what can't be scaled."""
        followed = (self.invocations_per_minute, self.backlog_per_instance)
        if followed == (None, None) and not self.scheduled:
            yield Problem("invocations_per_minute", "is needed; or scheduled bounds")
        if None not in followed:
            message = "the number follows invocations_per_minute already; remove one of them"
            yield Problem("backlog_per_instance", message)
        if self.from_zero and self.backlog_per_instance is None:
            message = "is needed with from_zero: it takes the last instance away again"
            yield Problem("backlog_per_instance", message)
        elif self.from_zero and not self.rests:
            yield Problem("from_zero", "there is always an instance; set min_instances to 0")
        yield from _ordered(self.min_instances, self.max_instances)
        for name, scheduled in self.scheduled.items():
            for problem in _ordered(*self.bounds(scheduled)):
                yield problem.within(f"scheduled.{name}")

    def bounds(self, scheduled: ScheduledScaling) -> tuple[int, int]:
        """Return the fewest and the most instances from a scheduled time on."""
        least, most = scheduled.min_instances, scheduled.max_instances
        return (
            self.min_instances if least is None else least,
            self.max_instances if most is None else most,
        )

    @property
    def whole(self) -> tuple[int, int]:
        """The fewest and the most instances at any time."""
        all_bounds = [self.bounds(each) for each in self.scheduled.values()]
        fewest, most = zip((self.min_instances, self.max_instances), *all_bounds, strict=True)
        return min(fewest), max(most)

    @property
    def rests(self) -> bool:
        """True if there may be no instances, at least from some time on."""
        return self.whole[0] == 0

    def resting(self) -> Iterator[str]:
        """Yield the fields that only an asynchronous endpoint has: it can do without instances."""
        if self.backlog_per_instance is not None:
            yield "backlog_per_instance"
        if self.from_zero:
            yield "from_zero"
        if self.min_instances == 0:
            yield "min_instances"
        for name, scheduled in self.scheduled.items():
            if scheduled.min_instances == 0:
                yield f"scheduled.{name}.min_instances"

    def policy(self, endpoint: Text) -> dict[str, Any] | None:
        """Return ``TargetTrackingScalingPolicyConfiguration``; ``None`` if no load is followed."""
        cooldowns = {
            "ScaleInCooldown": self.scale_in_cooldown_s,
            "ScaleOutCooldown": self.scale_out_cooldown_s,
        }
        if self.backlog_per_instance is not None:
            backlog = {
                "MetricName": "ApproximateBacklogSizePerInstance",
                "Namespace": "AWS/SageMaker",
                "Dimensions": [{"Name": "EndpointName", "Value": endpoint}],
                "Statistic": "Average",
            }
            return {
                "TargetValue": self.backlog_per_instance,
                "CustomizedMetricSpecification": backlog,
                **cooldowns,
            }
        if self.invocations_per_minute is None:
            return None
        metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
        return {
            "TargetValue": self.invocations_per_minute,
            "PredefinedMetricSpecification": metric,
            **cooldowns,
        }


def _ordered(least: int, most: int) -> Iterator[Problem]:
    if most < least:
        message = f"expected at least min_instances ({least}), got {most}"
        yield Problem("max_instances", message)
