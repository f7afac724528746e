"""A CloudFormation template of what a deployment makes.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-anatomy.html
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

from orchestration.deploy.aliases.model import Alias
from orchestration.deploy.applying import (
    machine_request,
    role_request,
    rule_request,
    schedule_request,
)
from orchestration.deploy.exporting.contents import Export, Resource, expected
from orchestration.deploy.monitoring.alarms import Alarm
from orchestration.deploy.monitoring.logs import LogGroup
from orchestration.deploy.reading import POLICY
from orchestration.deploy.resources import Role, Rule, Schedule, StateMachine
from orchestration.errors import DeployError

MOST_INLINE_BYTES: Final = 51_200
"""Of a template in a request; a larger one must lie in S3.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html"""
MOST_BYTES: Final = 1_048_576
"""Of a template in S3, which the same page says."""
VERSION: Final = "StateMachineVersion"
"""The logical ID of the version that an alias leads to."""
_TYPES: Final = {
    Role: ("AWS::IAM::Role", "Role"),
    LogGroup: ("AWS::Logs::LogGroup", "LogGroup"),
    StateMachine: ("AWS::StepFunctions::StateMachine", "StateMachine"),
    Alias: ("AWS::StepFunctions::StateMachineAlias", "Alias"),
    Schedule: ("AWS::Scheduler::Schedule", "Schedule"),
    Rule: ("AWS::Events::Rule", "Rule"),
    Alarm: ("AWS::CloudWatch::Alarm", "Alarm"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A template, and the definitions that lie in S3 beside it."""

    document: Mapping[str, Any]
    definitions: Mapping[str, str]
    """Texts by their keys; empty where the template holds them."""

    def text(self, *, as_json: bool = False) -> str:
        """Return the template as a file's text; the same every time."""
        if as_json:
            text = json.dumps(self.document, indent=2, ensure_ascii=False) + "\n"
        else:
            text = _yaml(self.document)
        if len(text.encode()) > MOST_BYTES:
            raise DeployError(
                f"the template has {len(text.encode()):,} bytes, and CloudFormation takes "
                f"{MOST_BYTES:,}; let the definitions lie in S3 (--definitions s3://bucket/prefix)"
            )
        return text


def template(export: Export, *, definitions: str | None = None) -> Template:
    """Render a template; its definitions lie below ``definitions`` in S3, if that is given."""
    writer = _Writer(export, _place(definitions))
    resources: dict[str, Any] = {}
    for each in export.resources:
        if isinstance(each, Alias):
            resources[VERSION] = writer.version(each)
        resources[writer.id(each)] = writer.resource(each)
    machine = next(writer.id(each) for each in export.resources if isinstance(each, StateMachine))
    rules = dict(_rules(export))
    parameters = _parameters(export)
    document = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"Pipeline {export.pipeline}, exported by orchestration.",
        **({"Parameters": parameters} if parameters else {}),
        **({"Rules": rules} if rules else {}),
        "Resources": resources,
        "Outputs": {"StateMachineArn": {"Value": {"Ref": machine}}},
    }
    return Template(document=document, definitions=writer.definitions)


def warnings(export: Export) -> tuple[str, ...]:
    """Return what a stack does otherwise than a deployment: it knows the new version's roles."""
    return tuple(
        f"alias {each.name} leaves runs to the version before while a new one is tried, and the "
        "roles of the stack allow what the new one needs, no more; where the other needs more, "
        "update the stack without canary or linear, or use `orchestrate deploy`, which allows both"
        for each in export.resources
        if isinstance(each, Alias) and each.trial is not None
    )


def _place(definitions: str | None) -> tuple[str, str] | None:
    if definitions is None:
        return None
    bucket, _, prefix = definitions.removeprefix("s3://").partition("/")
    if not definitions.startswith("s3://") or not bucket:
        raise DeployError(f"expected s3://bucket/prefix for the definitions, got {definitions!r}")
    return bucket, f"{prefix.rstrip('/')}/" if prefix.rstrip("/") else ""


class _Writer:
    """Writes resources, which refer to each other."""

    def __init__(self, export: Export, place: tuple[str, str] | None) -> None:
        self._export = export
        self._place = place
        self.definitions: dict[str, str] = {}
        self._ids: dict[str, Any] = {}
        for each in export.resources:
            if isinstance(each, Role):
                self._ids[each.arn] = {"Fn::GetAtt": [self.id(each), "Arn"]}
            elif isinstance(each, StateMachine | Alias):
                self._ids[each.arn] = {"Ref": self.id(each)}
            elif isinstance(each, LogGroup):
                self._ids[f"{each.arn}:*"] = {"Fn::GetAtt": [self.id(each), "Arn"]}

    def id(self, resource: Resource) -> str:
        """Return the logical ID of a resource: ``CompanionStateMachine``."""
        words = re.split(r"[^A-Za-z0-9]+", self._export.key(resource))
        return "".join(word[:1].upper() + word[1:] for word in words) + _TYPES[type(resource)][1]

    def resource(self, resource: Resource) -> dict[str, Any]:
        """Return a resource with its properties."""
        # Records of executions stay when a stack goes, as they do when a deployment goes.
        # What a first creation that failed made goes: its name would be in the next one's way.
        kept = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
        return {
            "Type": _TYPES[type(resource)][0],
            **(kept if isinstance(resource, LogGroup) else {}),
            "Properties": self._properties(resource),
        }

    def version(self, alias: Alias) -> dict[str, Any]:
        """Return the version that an alias leads to: another one for each revision.

        Those before stay, to lead the alias back to.
        """
        machine = self._ids[alias.machine_arn]
        revision = {"Fn::GetAtt": [machine["Ref"], "StateMachineRevisionId"]}
        return {
            "Type": "AWS::StepFunctions::StateMachineVersion",
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": {"StateMachineArn": machine, "StateMachineRevisionId": revision},
        }

    def _routing(self, alias: Alias) -> dict[str, Any]:
        version = {"StateMachineVersionArn": {"Ref": VERSION}}
        if alias.trial is None:
            return {"RoutingConfiguration": [{**version, "Weight": 100}]}
        alarms = [
            {"Ref": self.id(each)} for each in self._export.resources if isinstance(each, Alarm)
        ]
        preference = {
            **version,
            "Type": "LINEAR" if alias.trial.is_linear else "CANARY",
            "Percentage": alias.trial.percent,
            "Interval": alias.trial.minutes,
            **({"Alarms": alarms} if alarms else {}),
        }
        return {"DeploymentPreference": preference}

    def _properties(self, resource: Resource) -> dict[str, Any]:
        match resource:
            case Role():
                return self._role(resource)
            case LogGroup():
                return self._log_group(resource)
            case Alarm():
                dimensions = [
                    {**each, "Value": self._arn(each["Value"])}
                    for each in resource.settings["Dimensions"]
                ]
                return {**self._written(resource.request()), "Dimensions": dimensions}
            case StateMachine():
                return self._machine(resource)
            case Alias():
                return {
                    "Name": resource.name,
                    "Description": resource.description,
                    **self._routing(resource),
                }
            case Schedule():
                request = schedule_request(resource)
                target = request["Target"]
                arns = {name: self._arn(target[name]) for name in ("Arn", "RoleArn")}
                return {**self._written(request), "Target": {**self._written(target), **arns}}
            case Rule():
                targets = [self._target(each.request()) for each in resource.targets]
                request = rule_request(resource)
                # Of an object, CloudFormation would refuse a null; a pattern may also be its text,
                # which CDK's CfnInclude refuses.
                # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-event-patterns-null-values.html
                if not _has_null(resource.pattern):
                    request |= {"EventPattern": resource.pattern}
                return {**self._written(request), "Targets": targets}
            case _:
                assert_never(resource)

    def _role(self, role: Role) -> dict[str, Any]:
        policy = {"PolicyName": POLICY, "PolicyDocument": self._written(role.policy)}
        return {
            **self._written(role_request(role)),
            "AssumeRolePolicyDocument": self._written(role.trust),
            **({"Policies": [policy]} if role.policy["Statement"] else {}),
        }

    def _machine(self, machine: StateMachine) -> dict[str, Any]:
        request = machine_request(machine)
        return {
            "StateMachineName": self._written(request["name"]),
            "StateMachineType": request["type"],
            "RoleArn": self._arn(request["roleArn"]),
            **self._definition(request["definition"]),
            **self._monitoring(machine),
            "Tags": [
                {"Key": tag["key"], "Value": self._written(tag["value"])} for tag in request["tags"]
            ],
        }

    def _monitoring(self, machine: StateMachine) -> dict[str, Any]:
        written: dict[str, Any] = {}
        if machine.logging is not None:
            written["LoggingConfiguration"] = {"Level": machine.logging.level}
            if machine.logging.log_group_arn:
                group = {"LogGroupArn": self._arn(f"{machine.logging.log_group_arn}:*")}
                written["LoggingConfiguration"] |= {
                    "IncludeExecutionData": machine.logging.include_execution_data,
                    "Destinations": [{"CloudWatchLogsLogGroup": group}],
                }
        if machine.tracing is not None:
            written["TracingConfiguration"] = {"Enabled": machine.tracing}
        return written

    def _log_group(self, group: LogGroup) -> dict[str, Any]:
        days = group.retention_days
        return {
            "LogGroupName": self._written(group.name),
            **({} if days is None else {"RetentionInDays": days}),
            "Tags": [{"Key": key, "Value": self._written(group.tags[key])} for key in group.tags],
        }

    def _definition(self, text: str) -> dict[str, Any]:
        """Return the definition, or its place; it holds no account, so nothing is substituted."""
        # The same JSON, in which nothing looks like a substitution.
        text = text.replace("${", "$\\u007b")
        if self._place is None:
            return {"DefinitionString": text}
        bucket, prefix = self._place
        key = f"{prefix}{hashlib.sha256(text.encode()).hexdigest()}.asl.json"
        self.definitions[key] = text
        return {"DefinitionS3Location": {"Bucket": bucket, "Key": key}}

    def _target(self, request: Mapping[str, Any]) -> dict[str, Any]:
        arns = {name: self._arn(request[name]) for name in ("Arn", "RoleArn") if name in request}
        return {**self._written(request), **arns}

    def _arn(self, arn: str) -> Any:
        return self._ids.get(arn) or self._written(arn)

    def _written(self, value: Any) -> Any:
        match value:
            case str() if self._export.placeholders.held(value):
                return {
                    "Fn::Sub": self._export.placeholders.written(
                        value, literal=_literal, reference=_reference
                    )
                }
            case Mapping():
                return {key: self._written(each) for key, each in value.items()}
            case list() | tuple():
                return [self._written(each) for each in value]
            case _:
                return value


def _has_null(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if isinstance(value, list | tuple) else value is None


def _literal(text: str) -> str:
    return text.replace("${", "${!")


def _reference(name: str) -> str:
    return f"${{{name}}}"


def _parameters(export: Export) -> dict[str, Any]:
    """Declare the parameters: text that JSON and ARNs take as it is."""
    lower = export.in_lower_case
    return {
        name: {
            "Type": "String",
            "AllowedPattern": r'[^"\\A-Z]+' if name in lower else r'[^"\\]+',
            "ConstraintDescription": expected(lower=name in lower),
        }
        for name in export.parameters
    }


def _rules(export: Export) -> Iterator[tuple[str, Any]]:
    """Yield what refuses a stack in a wrong place, before anything is made."""
    for name, reference, value in (
        ("Account", "AWS::AccountId", export.account),
        ("Region", "AWS::Region", export.region),
    ):
        if value is not None:
            yield (
                name,
                {
                    "Assertions": [
                        {
                            "Assert": {"Fn::Equals": [{"Ref": reference}, value]},
                            "AssertDescription": f"This template is for {name.lower()} {value}.",
                        }
                    ]
                },
            )


def _yaml(document: Mapping[str, Any]) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes long texts as blocks, and everything in full."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if len(value) > 200 or "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return str(
        yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)
    )
