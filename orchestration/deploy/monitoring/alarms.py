"""Alarms of CloudWatch on executions that did not succeed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

METRICS: Final = {
    "executions-failed": "ExecutionsFailed",
    "executions-timed-out": "ExecutionsTimedOut",
    "executions-aborted": "ExecutionsAborted",
}
"""The metrics that have an alarm, by the end of its name.
https://docs.aws.amazon.com/step-functions/latest/dg/procedure-cw-metrics.html"""
_SETTINGS: Final = (
    "Namespace",
    "MetricName",
    "Dimensions",
    "Statistic",
    "Period",
    "EvaluationPeriods",
    "Threshold",
    "ComparisonOperator",
    "TreatMissingData",
    "ActionsEnabled",
    "AlarmActions",
)


def alarm_names(pipeline: str) -> tuple[str, ...]:
    """Name the alarms that a pipeline may have."""
    return tuple(f"{pipeline}-{end}" for end in METRICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """An alarm on a metric."""

    name: str
    arn: str
    settings: Mapping[str, Any]
    """The metric that it watches and the topics that it tells, as CloudWatch takes them."""
    tags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def on(cls, metric: str, machine_arn: str, topics: tuple[str, ...], **fields: Any) -> Alarm:
        """Return an alarm on one execution or more within five minutes."""
        settings = {
            "Namespace": "AWS/States",
            "MetricName": metric,
            "Dimensions": [{"Name": "StateMachineArn", "Value": machine_arn}],
            "Statistic": "Sum",
            "Period": 300,
            "EvaluationPeriods": 1,
            "Threshold": 1.0,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            # There is no data point while nothing fails.
            "TreatMissingData": "notBreaching",
            "ActionsEnabled": True,
            "AlarmActions": list(topics),
        }
        return cls(settings=settings, **fields)

    @classmethod
    def of(cls, found: Mapping[str, Any], tags: Mapping[str, str]) -> Alarm:
        """Read what CloudWatch describes."""
        settings = {name: found[name] for name in _SETTINGS if name in found}
        return cls(name=found["AlarmName"], arn=found["AlarmArn"], settings=settings, tags=tags)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that it tells."""
        return tuple(self.settings["AlarmActions"])

    def request(self) -> dict[str, Any]:
        """Return the request that creates or updates it; tags count only when it is created."""
        return {
            "AlarmName": self.name,
            "AlarmDescription": "Executions that did not succeed; made by orchestration.",
            **self.settings,
            "Tags": [{"Key": key, "Value": value} for key, value in self.tags.items()],
        }

    def aspects(self) -> dict[str, Any]:
        """Return its parts for comparing and showing."""
        return {"settings": dict(self.settings), "tags": dict(self.tags)}
