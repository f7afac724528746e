"""A Terraform configuration, as JSON, of what a deployment makes.

Texts are templates there: ``${`` and ``%{`` of a definition or a policy are escaped.
https://developer.hashicorp.com/terraform/language/syntax/json (November 2026), and the pages of the
provider's resources below https://registry.terraform.io/providers/hashicorp/aws/latest/docs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, assert_never

from orchestration.deploy.aliases.model import Alias
from orchestration.deploy.applying import (
    machine_request,
    role_request,
    rule_request,
    schedule_request,
)
from orchestration.deploy.exporting.contents import Export, Resource, expected
from orchestration.deploy.exporting.placeholders import ACCOUNT, REGION, snake
from orchestration.deploy.monitoring.alarms import Alarm
from orchestration.deploy.monitoring.logs import LogGroup
from orchestration.deploy.reading import POLICY
from orchestration.deploy.resources import Role, Rule, Schedule, StateMachine

PROVIDER: Final = {"source": "hashicorp/aws", "version": ">= 6.0"}
"""From 6.0 on the data source of a region calls its name ``region``."""
_TYPES: Final = {
    Role: "aws_iam_role",
    LogGroup: "aws_cloudwatch_log_group",
    StateMachine: "aws_sfn_state_machine",
    Alias: "aws_sfn_alias",
    Schedule: "aws_scheduler_schedule",
    Rule: "aws_cloudwatch_event_rule",
    Alarm: "aws_cloudwatch_metric_alarm",
}
_LOCALS: Final = {ACCOUNT: "account_id", REGION: "region"}


def configuration(export: Export) -> dict[str, Any]:
    """Render a configuration of one module."""
    writer = _Writer(export)
    resources: dict[str, dict[str, Any]] = {}
    for each in export.resources:
        for kind, label, arguments in writer.blocks(each):
            resources.setdefault(kind, {})[label] = arguments
    machine = next(each for each in export.resources if isinstance(each, StateMachine))
    lower = export.in_lower_case
    variables = {snake(n): _variable(n, lower=n in lower) for n in export.parameters}
    return {
        "terraform": {"required_version": ">= 1.3", "required_providers": {"aws": PROVIDER}},
        **({"variable": variables} if variables else {}),
        "data": {"aws_caller_identity": {"current": {}}, "aws_region": {"current": {}}},
        "locals": {
            "account_id": "${data.aws_caller_identity.current.account_id}",
            "region": "${data.aws_region.current.region}",
        },
        "resource": resources,
        "output": {"state_machine_arn": {"value": f"${{{writer.address(machine)}.arn}}"}},
    }


def text(export: Export) -> str:
    """Return the configuration as a file's text; the same every time."""
    return json.dumps(configuration(export), indent=2, ensure_ascii=False) + "\n"


def warnings(export: Export) -> tuple[str, ...]:
    """Return what a configuration does otherwise than a deployment: it knows one version only."""
    return tuple(
        f"alias {each.name} gives a new version all runs at once: a configuration does not know "
        "the version before, which canary and linear of step_functions.alias leave the rest"
        for each in export.resources
        if isinstance(each, Alias) and each.trial is not None
    )


class _Writer:
    """Writes resources, which refer to each other."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self._addresses = {
            each.arn: self.address(each)
            for each in export.resources
            if isinstance(each, Role | LogGroup | StateMachine | Alias)
        }
        roles = (each for each in export.resources if isinstance(each, Role))
        self._permitted = {role.arn for role in roles if role.policy["Statement"]}
        self._versioned = {e.machine_arn for e in export.resources if isinstance(e, Alias)}
        self._first = next(each for each in export.resources if isinstance(each, StateMachine))

    def address(self, resource: Resource) -> str:
        """Return the address of a resource: ``aws_iam_role.states``."""
        return f"{_TYPES[type(resource)]}.{self._label(resource)}"

    def _label(self, resource: Resource) -> str:
        return re.sub(r"[^A-Za-z0-9]+", "_", self._export.key(resource)).lower() or "pipeline"

    def blocks(self, resource: Resource) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield a resource, and what Terraform has beside it: policies, targets."""
        kind, label = _TYPES[type(resource)], self._label(resource)
        match resource:
            case Role():
                yield kind, label, self._role(resource)
                if resource.policy["Statement"]:
                    yield "aws_iam_role_policy", label, self._policy(resource)
            case LogGroup():
                yield kind, label, self._log_group(resource)
            case Alarm():
                yield kind, label, self._alarm(resource)
            case StateMachine():
                yield kind, label, self._machine(resource)
            case Alias():
                yield kind, label, self._alias(resource)
            case Schedule():
                yield kind, label, self._schedule(resource)
            case Rule():
                yield kind, label, self._rule(resource)
                for target in resource.targets:
                    name = re.sub(r"[^A-Za-z0-9]+", "_", f"{label}_{target.id}")
                    yield (
                        "aws_cloudwatch_event_target",
                        name,
                        self._target(resource, target.request()),
                    )
            case _:
                assert_never(resource)

    def _role(self, role: Role) -> dict[str, Any]:
        request = role_request(role)
        return {
            "name": self._text(request["RoleName"]),
            "description": self._text(request["Description"]),
            "assume_role_policy": self._text(request["AssumeRolePolicyDocument"]),
            "tags": {tag["Key"]: self._text(tag["Value"]) for tag in request["Tags"]},
        }

    def _policy(self, role: Role) -> dict[str, Any]:
        policy = json.dumps(role.policy, ensure_ascii=False)
        address = self.address(role)
        return {"name": POLICY, "role": f"${{{address}.name}}", "policy": self._text(policy)}

    def _machine(self, machine: StateMachine) -> dict[str, Any]:
        request = machine_request(machine)
        written = {
            "name": self._text(request["name"]),
            "type": request["type"],
            "role_arn": self._arn(request["roleArn"]),
            "definition": self._text(request["definition"]),
            "tags": {tag["key"]: self._text(tag["value"]) for tag in request["tags"]},
            **({"publish": True} if machine.arn in self._versioned else {}),
            **self._monitoring(machine),
            **self._after(request["roleArn"]),
        }
        conditions = list(_conditions(self._export)) if machine is self._first else []
        return {**written, **({"lifecycle": {"precondition": conditions}} if conditions else {})}

    def _alias(self, alias: Alias) -> dict[str, Any]:
        version = f"${{{self._addresses[alias.machine_arn]}.state_machine_version_arn}}"
        return {
            "name": alias.name,
            "description": alias.description,
            "routing_configuration": [{"state_machine_version_arn": version, "weight": 100}],
        }

    def _monitoring(self, machine: StateMachine) -> dict[str, Any]:
        written: dict[str, Any] = {}
        if machine.logging is not None:
            written["logging_configuration"] = {"level": machine.logging.level}
            if machine.logging.log_group_arn:
                written["logging_configuration"] |= {
                    "include_execution_data": machine.logging.include_execution_data,
                    "log_destination": f"{self._arn(machine.logging.log_group_arn)}:*",
                }
        if machine.tracing is not None:
            written["tracing_configuration"] = {"enabled": machine.tracing}
        return written

    def _log_group(self, group: LogGroup) -> dict[str, Any]:
        return {
            "name": self._text(group.name),
            "retention_in_days": group.retention_days or 0,  # 0: records never expire.
            # Records of executions stay, as they do when a deployment is destroyed.
            "skip_destroy": True,
            "tags": {key: self._text(value) for key, value in group.tags.items()},
        }

    def _alarm(self, alarm: Alarm) -> dict[str, Any]:
        request = alarm.request()
        dimensions = request["Dimensions"]
        return {
            "alarm_name": self._text(request["AlarmName"]),
            "alarm_description": request["AlarmDescription"],
            "namespace": request["Namespace"],
            "metric_name": request["MetricName"],
            "dimensions": {each["Name"]: self._arn(each["Value"]) for each in dimensions},
            "statistic": request["Statistic"],
            "period": request["Period"],
            "evaluation_periods": request["EvaluationPeriods"],
            "threshold": request["Threshold"],
            "comparison_operator": request["ComparisonOperator"],
            "treat_missing_data": request["TreatMissingData"],
            "actions_enabled": request["ActionsEnabled"],
            "alarm_actions": [self._text(arn) for arn in request["AlarmActions"]],
            "tags": {key: self._text(value) for key, value in alarm.tags.items()},
        }

    def _schedule(self, schedule: Schedule) -> dict[str, Any]:
        request = schedule_request(schedule)
        target, retry = request["Target"], request["Target"]["RetryPolicy"]
        return {
            "name": self._text(request["Name"]),
            "group_name": request["GroupName"],
            "description": self._text(request["Description"]),
            "schedule_expression": self._text(request["ScheduleExpression"]),
            "schedule_expression_timezone": self._text(request["ScheduleExpressionTimezone"]),
            "state": request["State"],
            **{snake(name): request[name] for name in ("StartDate", "EndDate") if name in request},
            "flexible_time_window": {
                snake(name): value for name, value in request["FlexibleTimeWindow"].items()
            },
            "target": {
                "arn": self._arn(target["Arn"]),
                "role_arn": self._arn(target["RoleArn"]),
                "input": self._text(target["Input"]),
                "retry_policy": {snake(name): value for name, value in retry.items()},
            },
            **self._after(target["RoleArn"]),
        }

    def _rule(self, rule: Rule) -> dict[str, Any]:
        request = rule_request(rule)
        return {
            "name": self._text(request["Name"]),
            "description": self._text(request["Description"]),
            "event_pattern": self._text(request["EventPattern"]),
            "state": request["State"],
        }

    def _target(self, rule: Rule, request: Mapping[str, Any]) -> dict[str, Any]:
        written: dict[str, Any] = {
            "rule": f"${{{self.address(rule)}.name}}",
            "target_id": request["Id"],
            "arn": self._arn(request["Arn"]),
        }
        if "RoleArn" in request:
            written |= {"role_arn": self._arn(request["RoleArn"])}
            written |= self._after(request["RoleArn"])
        if "Input" in request:
            written["input"] = self._text(request["Input"])
        if transformer := request.get("InputTransformer"):
            paths = transformer["InputPathsMap"]
            written["input_transformer"] = {
                "input_paths": {name: self._text(path) for name, path in paths.items()},
                "input_template": self._text(transformer["InputTemplate"]),
            }
        return written

    def _after(self, role_arn: str) -> dict[str, Any]:
        """Let what uses a role wait for its policy, which is a resource of its own."""
        if role_arn not in self._permitted:
            return {}
        address = self._addresses[role_arn]
        return {"depends_on": [address.replace("aws_iam_role.", "aws_iam_role_policy.")]}

    def _arn(self, arn: str) -> str:
        address = self._addresses.get(arn)
        return self._text(arn) if address is None else f"${{{address}.arn}}"

    def _text(self, text: str) -> str:
        return self._export.placeholders.written(text, literal=_literal, reference=_reference)


def _literal(text: str) -> str:
    """Escape what begins an expression or a directive in a template.

    >>> _literal("${x} {%{'a': 1}%}")
    "$${x} {%%{'a': 1}%}"
    """
    return text.replace("${", "$${").replace("%{", "%%{")


def _reference(name: str) -> str:
    local = _LOCALS.get(name)
    return f"${{var.{snake(name)}}}" if local is None else f"${{local.{local}}}"


def _variable(name: str, *, lower: bool) -> dict[str, Any]:
    """Declare a variable: text that JSON and ARNs take as it is."""
    refused = r"\"\\\\" + ("A-Z" if lower else "")
    return {
        "type": "string",
        "validation": {
            "condition": f'${{can(regex("^[^{refused}]+$", var.{snake(name)}))}}',
            "error_message": f"Expected {expected(lower=lower)}.",
        },
    }


def _conditions(export: Export) -> Iterator[dict[str, str]]:
    """Yield what refuses a plan for a wrong place."""
    for name, local, value in (
        ("account", "account_id", export.account),
        ("region", "region", export.region),
    ):
        if value is not None:
            yield {
                "condition": f'${{local.{local} == "{value}"}}',
                "error_message": f"This configuration is for {name} {value}.",
            }
