"""Settings of a pipeline's state machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from orchestration.catalog.partitions import partition_of
from orchestration.errors import Problem
from orchestration.refs import Expression
from orchestration.stages.options.topics import TopicArns
from orchestration.stages.values import Model

ROLE: Final = r"^arn:aws(-[a-z]+)*:iam::\d{12}:role/[\w+=,.@/-]{1,576}$"
"""The ARN of a role of IAM."""


def _role(value: object) -> str:
    if isinstance(value, Mapping | Expression):
        raise ValueError(
            f"expected the ARN of a role, got {value!r}: the state machine gets its role when the "
            "pipeline is deployed, before any run has parameters"
        )
    if not isinstance(value, str) or re.fullmatch(ROLE, value) is None:
        raise ValueError(f"expected arn:aws:iam::<account>:role/<name>, got {value!r}")
    return value


RoleArn: TypeAlias = Annotated[
    str, BeforeValidator(_role), WithJsonSchema({"type": "string", "pattern": ROLE})
]
"""The ARN of a role of IAM."""


RetentionDays: TypeAlias = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922,
    3288, 3653,
]  # fmt: skip
"""https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html"""


class LoggingOptions(Model):
    """The logging of executions to CloudWatch Logs."""

    level: Literal["ALL", "ERROR", "FATAL", "OFF"] = "ALL"
    """The events that are logged: all of an execution's history, errors, the ends of executions
    that did not succeed, or none."""
    include_execution_data: bool = False
    """Log the input and the output of executions and states, too."""
    retention_days: RetentionDays | None = 90
    """Days after which records expire; ``null``: never."""


class CanaryOptions(Model):
    """The trial of a new version beside the one before."""

    percent: int = Field(ge=1, le=99, strict=True)
    """The runs of 100 that the new version gets until it is promoted."""
    minutes: int = Field(ge=1, le=2100, strict=True)
    """The least time of the trial. Then `orchestrate promote` gives the version all runs, and
    CloudFormation does so by itself."""


class LinearOptions(Model):
    """The trial of a new version that gets more and more of the runs."""

    percent: int = Field(ge=1, le=99, strict=True)
    """The runs of 100 that the new version gets at first, and more of them with each step."""
    minutes: int = Field(ge=1, le=2100, strict=True)
    """The least time of each step. Each `orchestrate promote` takes the next one, and
    CloudFormation takes all of them by itself."""


class AliasOptions(Model):
    """The alias of the state machine that starts runs."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,79}$")
    """Its name: ``live``, say."""
    canary: CanaryOptions | None = None
    """Lets a new version get some of the runs first; by default it gets all of them at once."""
    linear: LinearOptions | None = None
    """Lets a new version get some of the runs first, and step by step more of them."""

    @model_validator(mode="after")
    def _one_trial(self) -> Self:
        if self.canary is not None and self.linear is not None:
            raise ValueError("has canary and linear; a new version is tried in one of the two ways")
        return self


class AlarmOptions(Model):
    """Alarms of CloudWatch on executions that failed, timed out or were aborted."""

    sns_topic: TopicArns | None = None
    """The topics that hear of them; by default those of ``notify.on_failure``. Their access
    policies must let ``cloudwatch.amazonaws.com`` publish."""


class StepFunctionsOptions(Model):
    """Settings of the state machine that ``deploy`` makes; other backends ignore them."""

    role: RoleArn | None = None
    """ARN of a role of your own that the state machine, its schedule and its companion run under.
    By default ``deploy`` makes one; this one it only checks, and shows what it needs."""
    logging: LoggingOptions | None = None
    """Logs executions to the log group ``/aws/vendedlogs/states/<pipeline>``, which ``deploy``
    makes; by default the state machine's logging is left as it is."""
    tracing: bool | None = None
    """Traces executions with AWS X-Ray, or does not; by default that is left as it is."""

    alarms: AlarmOptions | None = None
    """Makes an alarm of CloudWatch on each metric of executions that did not succeed."""

    alias: AliasOptions | None = None
    """Starts runs by an alias of the state machine, which leads to the version that was deployed
    last; by default they are started by the state machine itself."""

    def misplaced(self, region: str | None) -> Iterator[Problem]:
        """Yield the role if it is not in the partition of the pipeline's region."""
        if self.role is None or region is None:
            return
        partition = self.role.split(":")[1]
        expected = partition_of(region)
        if partition != expected:
            yield Problem(
                "step_functions.role",
                f"{self.role} is in partition {partition}, and the pipeline runs in {region} "
                f"({expected}); name a role of an account there",
            )
