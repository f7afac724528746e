"""Reading of the resources with a pipeline's names in an account; changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from orchestration.deploy.account import Clients
from orchestration.deploy.aliases.model import ALIAS, Alias, Route
from orchestration.deploy.events.missed import caught_up_in
from orchestration.deploy.monitoring.alarms import Alarm
from orchestration.deploy.monitoring.logs import Logging, LogGroup
from orchestration.deploy.permissions import document
from orchestration.deploy.resources import (
    GROUP,
    Companion,
    CompanionNames,
    Current,
    Names,
    Role,
    Rule,
    Schedule,
    StateMachine,
    Target,
)
from orchestration.deploy.sources import present
from orchestration.errors import DeployError
from orchestration.notices import Template

POLICY = "orchestration"
"""The name of a role's inline policy."""


def current(session: Clients, names: Names) -> Current:
    """Read the resources with these names in an account."""
    s3 = session.client("s3") if names.sources else None
    iam = session.client("iam")
    states = session.client("stepfunctions")
    machine, kind = state_machine(states, names.machine_arn)
    return Current(
        sources=tuple(folder for folder in names.sources if present(folder, s3)),
        role=_role(iam, names.role),
        machine=machine,
        machine_type=kind,
        schedule_role=_role(iam, names.schedule_role),
        schedule=_schedule(session.client("scheduler"), names.schedule),
        companion=_companion(session, names.companion),
        notices=_rules(session, names.notices),
        trigger_role=_role(iam, names.trigger_role) if names.trigger_role else None,
        trigger=next(iter(_rules(session, filter(None, [names.trigger]))), None),
        transfer_role=None if names.transfer_role is None else _role(iam, names.transfer_role),
        batch_role=None if names.batch_role is None else _role(iam, names.batch_role),
        log_group=_log_group(session.client("logs"), names.log_group) if names.log_group else None,
        alarms=_alarms(session.client("cloudwatch"), names.alarms) if names.alarms else (),
        aliases=() if machine is None else tuple(aliases(states, machine, names.alias)),
    )


def _companion(session: Clients, names: CompanionNames) -> Companion:
    iam = session.client("iam")
    machine, _ = state_machine(session.client("stepfunctions"), names.machine_arn)
    return Companion(
        role=_role(iam, names.role),
        machine=machine,
        starter=_role(iam, names.starter),
        rule=_rule(session.client("events"), names.name),
        sweep=_schedule(session.client("scheduler"), names.name),
    )


def _found(call: Callable[..., Any], absent: str, **request: Any) -> Any:
    """Return the response, or ``None`` if the service says that the resource does not exist."""
    from botocore.exceptions import ClientError

    try:
        return call(**request)
    except ClientError as error:
        if error.response["Error"]["Code"].removesuffix("Exception") == absent:
            return None
        raise DeployError(
            f"the current deployment can't be read: {error}; reading needs states:Describe*, "
            "iam:GetRole, iam:GetRolePolicy, scheduler:GetSchedule, events:DescribeRule, "
            "events:ListTargetsByRule, s3:ListBucket, and logs:DescribeLogGroups and "
            "logs:ListTagsForResource for logging, and "
            "cloudwatch:DescribeAlarms and cloudwatch:ListTagsForResource for alarms, and "
            "states:ListStateMachineAliases for an alias"
        ) from error


def state_machine(client: Any, arn: str) -> tuple[StateMachine | None, str]:
    """Read a state machine and its type."""
    response = _found(
        client.describe_state_machine, "StateMachineDoesNotExist", stateMachineArn=arn
    )
    if response is None:
        return None, "STANDARD"
    tags = _found(client.list_tags_for_resource, "ResourceNotFound", resourceArn=arn) or {}
    named = {tag["key"]: tag["value"] for tag in tags.get("tags", ())}
    return replace(machine_of(response), tags=named), response.get("type", "STANDARD")


def machine_of(response: Mapping[str, Any]) -> StateMachine:
    """Return a state machine, or a version of one, as DescribeStateMachine answers; no tags."""
    return StateMachine(
        name=response["name"],
        arn=response["stateMachineArn"],
        definition=json.loads(response["definition"]),
        role_arn=response["roleArn"],
        logging=Logging.of(response.get("loggingConfiguration", {})),
        tracing=response.get("tracingConfiguration", {}).get("enabled", False),
    )


def aliases(client: Any, machine: StateMachine, wanted: str = "") -> Iterator[Alias]:
    """Yield the alias that is asked for, and those that deployments of the machine have made.

    Of a machine without the tag there are none of the latter, and nobody is asked.
    """
    tagged = machine.tags.get(ALIAS, "")
    if not (wanted or tagged):
        return
    # There are at most 100, which is a page.
    listed = _found(client.list_state_machine_aliases, "", stateMachineArn=machine.arn)
    arns = [each["stateMachineAliasArn"] for each in listed["stateMachineAliases"]]
    if tagged and f"{machine.arn}:{tagged}" not in arns:
        yield Alias(name=tagged, machine_arn=machine.arn, routes=())
    for arn in arns:
        found = _found(client.describe_state_machine_alias, "", stateMachineAliasArn=arn)
        alias = Alias.read(
            found.get("description", ""),
            name=found["name"],
            machine_arn=machine.arn,
            updated=found.get("updateDate"),
        )
        if alias.made or alias.name == wanted:
            routes = (_route(client, each, machine) for each in found["routingConfiguration"])
            yield replace(alias, routes=tuple(sorted(routes, key=lambda each: each.version or 0)))


def starting_alias(client: Any, machine: StateMachine) -> Alias | None:
    """Return the alias that starts runs of a deployed pipeline, if one does."""
    name = machine.tags.get(ALIAS)
    return next((a for a in aliases(client, machine) if a.name == name and a.routes), None)


def _route(client: Any, found: Mapping[str, Any], machine: StateMachine) -> Route:
    arn = found["stateMachineVersionArn"]
    version = _found(client.describe_state_machine, "", stateMachineArn=arn)
    return Route(
        weight=found["weight"],
        version=int(arn.rpartition(":")[2]),
        newest=machine_of(version).executed() == machine.executed(),
        definition=json.loads(version["definition"]),
    )


def _log_group(client: Any, name: str) -> LogGroup | None:
    pages = _found(client.describe_log_groups, "", logGroupNamePrefix=name)
    for found in pages["logGroups"]:
        if found["logGroupName"] == name:
            arn = found["arn"].removesuffix(":*")
            tags = _found(client.list_tags_for_resource, "ResourceNotFound", resourceArn=arn) or {}
            return LogGroup(
                name=name,
                arn=arn,
                retention_days=found.get("retentionInDays"),
                tags=tags.get("tags", {}),
            )
    return None


def _alarms(client: Any, names: tuple[str, ...]) -> tuple[Alarm, ...]:
    found = _found(client.describe_alarms, "AccessDenied", AlarmNames=list(names)) or {}
    # Whoever may not read alarms has made none; asking for them anew is then refused as well.
    listed = found.get("MetricAlarms", ())
    return tuple(Alarm.of(each, _tags_of(client, each["AlarmArn"])) for each in listed)


def _tags_of(client: Any, arn: str) -> dict[str, str]:
    found = _found(client.list_tags_for_resource, "ResourceNotFound", ResourceARN=arn) or {}
    return {tag["Key"]: tag["Value"] for tag in found.get("Tags", ())}


def _role(client: Any, name: str) -> Role | None:
    response = _found(client.get_role, "NoSuchEntity", RoleName=name)
    if response is None:
        return None
    role = response["Role"]
    policy = _found(client.get_role_policy, "NoSuchEntity", RoleName=name, PolicyName=POLICY)
    return Role(
        name=name,
        arn=role["Arn"],
        trust=role["AssumeRolePolicyDocument"],
        policy=document() if policy is None else policy["PolicyDocument"],
        tags={tag["Key"]: tag["Value"] for tag in role.get("Tags", ())},
    )


def _schedule(client: Any, name: str) -> Schedule | None:
    response = _found(client.get_schedule, "ResourceNotFound", Name=name, GroupName=GROUP)
    if response is None:
        return None
    target = response["Target"]
    return Schedule(
        name=name,
        expression=response["ScheduleExpression"],
        timezone=response.get("ScheduleExpressionTimezone", "UTC"),
        target_arn=target["Arn"],
        role_arn=target["RoleArn"],
        input=json.loads(target.get("Input", "{}")),
        state=response.get("State", "ENABLED"),
        start=_universal(response.get("StartDate")),
        end=_universal(response.get("EndDate")),
        window_minutes=response["FlexibleTimeWindow"].get("MaximumWindowInMinutes"),
        retry=dict(target.get("RetryPolicy", {})),
        caught_up=caught_up_in(response.get("Description", ""), response["CreationDate"]),
    )


def _universal(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _rules(session: Clients, names: Iterable[str]) -> tuple[Rule, ...]:
    client = session.client("events")
    return tuple(rule for name in names if (rule := _rule(client, name)) is not None)


def _rule(client: Any, name: str) -> Rule | None:
    response = _found(client.describe_rule, "ResourceNotFound", Name=name)
    if response is None:
        return None
    targets = _found(client.list_targets_by_rule, "ResourceNotFound", Rule=name) or {}
    return Rule(
        name=name,
        pattern=json.loads(response.get("EventPattern") or "{}"),
        targets=tuple(map(_target, targets.get("Targets", ()))),
        state=response.get("State", "ENABLED"),
    )


def _target(target: Mapping[str, Any]) -> Target:
    template = target.get("InputTransformer")
    return Target(
        id=target["Id"],
        arn=target["Arn"],
        role_arn=target.get("RoleArn", ""),
        input=target.get("Input"),
        template=None
        if template is None
        else Template(paths=template.get("InputPathsMap", {}), text=template["InputTemplate"]),
    )
