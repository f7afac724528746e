"""The monitoring that a pipeline asks for, and what its state machine's role needs for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from orchestration.deploy.account import Account
from orchestration.deploy.monitoring.alarms import METRICS, Alarm, alarm_names
from orchestration.deploy.monitoring.logs import OFF, Logging, LogGroup, log_group_name
from orchestration.deploy.permissions import Statement
from orchestration.deploy.resources import Current, Desired, Role, StateMachine, owned
from orchestration.errors import DeployError

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

_DELIVERY: Final = frozenset(
    {
        "logs:CreateLogDelivery",
        "logs:DeleteLogDelivery",
        "logs:DescribeLogGroups",
        "logs:DescribeResourcePolicies",
        "logs:GetLogDelivery",
        "logs:ListLogDeliveries",
        "logs:PutResourcePolicy",
        "logs:UpdateLogDelivery",
    }
)
"""https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html#cloudwatch-iam-policy. None of
them can be limited to a resource. The records themselves are written by CloudWatch's delivery
service, whom the log group's resource policy lets in."""
_TRACING: Final = frozenset(
    {
        "xray:GetSamplingRules",
        "xray:GetSamplingTargets",
        "xray:PutTelemetryRecords",
        "xray:PutTraceSegments",
    }
)
"""https://docs.aws.amazon.com/step-functions/latest/dg/xray-iam.html; for every resource, too."""


def log_group(pipeline: Pipeline, account: Account, tags: Mapping[str, str]) -> LogGroup | None:
    """Compute the log group of a pipeline; of one that logs nothing, none."""
    options = pipeline.step_functions
    if options is None or options.logging is None or options.logging.level == "OFF":
        return None
    name = log_group_name(pipeline.name)
    return LogGroup(
        name=name,
        arn=account.arn("logs", f"log-group:{name}"),
        retention_days=options.logging.retention_days,
        tags=tags,
    )


def monitored(machine: StateMachine, pipeline: Pipeline, group: LogGroup | None) -> StateMachine:
    """Return a pipeline's state machine with the logging and the tracing that are asked for."""
    options = pipeline.step_functions
    if options is None:
        return machine
    logging = None if options.logging is None else OFF
    if options.logging is not None and group is not None:
        logging = Logging(
            level=options.logging.level,
            include_execution_data=options.logging.include_execution_data,
            log_group_arn=group.arn,
        )
    return replace(machine, logging=logging, tracing=options.tracing)


def alarms(pipeline: Pipeline, account: Account, tags: Mapping[str, str]) -> tuple[Alarm, ...]:
    """Compute the alarms of a pipeline; of one that asks for none, none."""
    options = pipeline.step_functions
    if options is None or options.alarms is None:
        return ()
    told = None if pipeline.notify is None else pipeline.notify.on_failure
    topics = options.alarms.sns_topic or (() if told is None else told.sns_topic)
    if not topics:
        raise DeployError(
            "step_functions.alarms: expected sns_topic here or in notify.on_failure: nobody would "
            "hear of an alarm"
        )
    machine = account.arn("states", f"stateMachine:{pipeline.name}")
    return tuple(
        Alarm.on(
            metric,
            machine,
            topics,
            name=name,
            arn=account.arn("cloudwatch", f"alarm:{name}"),
            tags=tags,
        )
        for name, metric in zip(alarm_names(pipeline.name), METRICS.values(), strict=True)
    )


def statements(pipeline: Pipeline) -> list[Statement]:
    """List what the role of a pipeline's state machine needs for its logging and its tracing."""
    options = pipeline.step_functions
    if options is None:
        return []
    needed = []
    if options.logging is not None and options.logging.level != "OFF":
        needed.append(Statement("DeliverLogs", _DELIVERY, frozenset("*")).by("logging"))
    if options.tracing:
        needed.append(Statement("TraceRuns", _TRACING, frozenset("*")).by("tracing"))
    return needed


def without_remains(desired: Desired, current: Current) -> Desired:
    """Turn off what an earlier deployment turned on and the pipeline no longer asks for.

    Logging to another place and tracing under another role were set by somebody else, and stay.
    """
    machine, before = desired.machine, current.machine
    if before is None or not owned(before.tags, desired.pipeline):
        return desired
    if machine.logging is None and logs_to_own(before):
        machine = replace(machine, logging=OFF)
    if machine.tracing is None and before.tracing and _may_trace(current.role):
        machine = replace(machine, tracing=False)
    return replace(desired, machine=machine)


def logs_to_own(machine: StateMachine) -> bool:
    """Return whether a state machine logs to the log group that a deployment makes for it."""
    own = f":log-group:{log_group_name(machine.name)}"
    return machine.logging is not None and machine.logging.log_group_arn.endswith(own)


def _may_trace(role: Role | None) -> bool:
    """Return whether a deployment has given a role what tracing needs."""
    statements = () if role is None else role.policy.get("Statement", ())
    return any(_TRACING.issubset(each["Action"]) for each in statements)
