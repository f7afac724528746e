"""The requests that create and update resources, of which exports are made as well."""

from __future__ import annotations

import json
from typing import Any

from orchestration.backends import stepfunctions
from orchestration.deploy.events.missed import told
from orchestration.deploy.resources import GROUP, Role, Rule, Schedule, StateMachine


def role_request(role: Role) -> dict[str, Any]:
    """Return the request that creates a role; its policy is put afterwards."""
    return {
        "RoleName": role.name,
        "AssumeRolePolicyDocument": json.dumps(role.trust, ensure_ascii=False),
        "Description": "Made by orchestration: may do what the steps of its pipeline do.",
        "Tags": [{"Key": key, "Value": value} for key, value in role.tags.items()],
    }


def machine_request(machine: StateMachine) -> dict[str, Any]:
    """Return the request that creates a state machine."""
    return {
        "name": machine.name,
        "type": "STANDARD",
        "tags": [{"key": key, "value": value} for key, value in machine.tags.items()],
        "definition": stepfunctions.compact(dict(machine.definition)),
        "roleArn": machine.role_arn,
        **monitoring_request(machine),
    }


def monitoring_request(machine: StateMachine) -> dict[str, Any]:
    """Return what a request says of logging and tracing; nothing leaves them as they are."""
    request: dict[str, Any] = {}
    if machine.logging is not None:
        request["loggingConfiguration"] = machine.logging.request()
    if machine.tracing is not None:
        request["tracingConfiguration"] = {"enabled": machine.tracing}
    return request


def schedule_request(schedule: Schedule) -> dict[str, Any]:
    """Return the request that creates or updates a schedule."""
    minutes = schedule.window_minutes
    flexible = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": minutes}
    bounds = {"StartDate": schedule.start, "EndDate": schedule.end}
    starts = f"Starts {_name(schedule.target_arn)}"
    return {
        "Name": schedule.name,
        "GroupName": GROUP,
        "Description": f"{starts}; made by orchestration.{told(schedule.caught_up)}",
        "ScheduleExpression": schedule.expression,
        "ScheduleExpressionTimezone": schedule.timezone,
        **{name: moment for name, moment in bounds.items() if moment is not None},
        "FlexibleTimeWindow": {"Mode": "OFF"} if minutes is None else flexible,
        "State": schedule.state,
        "Target": {
            "Arn": schedule.target_arn,
            "RoleArn": schedule.role_arn,
            "Input": json.dumps(schedule.input, ensure_ascii=False),
            "RetryPolicy": dict(schedule.retry),
        },
    }


def _name(target_arn: str) -> str:
    """Return the name of a state machine, with that of its alias: ``digits:live``."""
    return target_arn.split(":", 6)[6]


def rule_request(rule: Rule) -> dict[str, Any]:
    """Return the request that creates or updates a rule; its targets are put afterwards."""
    return {
        "Name": rule.name,
        "EventPattern": json.dumps(rule.pattern, ensure_ascii=False),
        "State": rule.state,
        "Description": "Starts or tells what its pipeline says; made by orchestration.",
    }
