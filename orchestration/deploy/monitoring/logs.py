"""The log group of a state machine, and the logging of its executions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

_PREFIX: Final = "/aws/vendedlogs/states/"
"""Log groups of this prefix never fill the resource policy by which logs are delivered.
https://docs.aws.amazon.com/step-functions/latest/dg/bp-cwl.html"""


def log_group_name(machine: str) -> str:
    """Return the name of the log group of a state machine's executions."""
    return f"{_PREFIX}{machine}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGroup:
    """A log group of CloudWatch Logs."""

    name: str
    arn: str
    """Without ``:*`` at its end."""
    retention_days: int | None = None
    """``None``: records never expire."""
    tags: Mapping[str, str] = field(default_factory=dict)

    def aspects(self) -> dict[str, Any]:
        """Return its parts for comparing and showing."""
        return {"retention_days": self.retention_days, "tags": dict(self.tags)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Logging:
    """The logging of a state machine's executions."""

    level: str
    include_execution_data: bool = False
    log_group_arn: str = ""
    """Without ``:*`` at its end; empty: nothing is logged."""

    @classmethod
    def of(cls, configuration: Mapping[str, Any]) -> Self:
        """Read what Step Functions describes; a level of OFF says all."""
        level = configuration.get("level", "OFF")
        if level == "OFF":
            return cls(level=level)
        groups = [each["cloudWatchLogsLogGroup"] for each in configuration["destinations"]]
        return cls(
            level=level,
            include_execution_data=configuration.get("includeExecutionData", False),
            log_group_arn=groups[0]["logGroupArn"].removesuffix(":*"),
        )

    def request(self) -> dict[str, Any]:
        """Return it as Step Functions takes it.

        https://docs.aws.amazon.com/step-functions/latest/apireference/API_LoggingConfiguration.html
        """
        if not self.log_group_arn:
            return {"level": self.level}
        group = {"logGroupArn": f"{self.log_group_arn}:*"}
        return {
            "level": self.level,
            "includeExecutionData": self.include_execution_data,
            "destinations": [{"cloudWatchLogsLogGroup": group}],
        }

    def aspects(self) -> dict[str, Any]:
        """Return its parts for comparing and showing."""
        return {
            "level": self.level,
            "include_execution_data": self.include_execution_data,
            "log_group": self.log_group_arn,
        }


OFF: Final = Logging(level="OFF")
