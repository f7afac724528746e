"""What an account holds under a pipeline's names: read, nothing changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from orchestration.deploy.account import Clients
from orchestration.deploy.resources import Current, Names, Role, Schedule, StateMachine
from orchestration.deploy.sources import present
from orchestration.errors import DeployError

POLICY = "orchestration"
"""What the inline policy of a role is called."""
GROUP = "default"
"""The group of schedules."""


def current(session: Clients, names: Names) -> Current:
    """What an account holds under some names."""
    s3 = session.client("s3") if names.sources else None
    iam = session.client("iam")
    machine, kind = _machine(session.client("stepfunctions"), names.machine_arn)
    return Current(
        sources=tuple(folder for folder in names.sources if present(folder, s3)),
        role=_role(iam, names.role),
        machine=machine,
        machine_type=kind,
        schedule_role=_role(iam, names.schedule_role),
        schedule=_schedule(session.client("scheduler"), names.schedule),
    )


def _found(call: Callable[..., Any], absent: str, **request: Any) -> Any:
    """The response, or ``None`` where the service says that there is no such thing."""
    from botocore.exceptions import ClientError

    try:
        return call(**request)
    except ClientError as error:
        if error.response["Error"]["Code"].removesuffix("Exception") == absent:
            return None
        raise DeployError(
            f"what is deployed already can't be read: {error}; reading needs states:Describe*, "
            "iam:GetRole, iam:GetRolePolicy, scheduler:GetSchedule and s3:ListBucket"
        ) from error


def _machine(client: Any, arn: str) -> tuple[StateMachine | None, str]:
    found = _found(client.describe_state_machine, "StateMachineDoesNotExist", stateMachineArn=arn)
    if found is None:
        return None, "STANDARD"
    tags = _found(client.list_tags_for_resource, "ResourceNotFound", resourceArn=arn) or {}
    machine = StateMachine(
        name=found["name"],
        arn=arn,
        definition=json.loads(found["definition"]),
        role_arn=found["roleArn"],
        tags={tag["key"]: tag["value"] for tag in tags.get("tags", ())},
    )
    return machine, found.get("type", "STANDARD")


def _role(client: Any, name: str) -> Role | None:
    found = _found(client.get_role, "NoSuchEntity", RoleName=name)
    if found is None:
        return None
    role = found["Role"]
    policy = _found(client.get_role_policy, "NoSuchEntity", RoleName=name, PolicyName=POLICY)
    return Role(
        name=name,
        arn=role["Arn"],
        trust=role["AssumeRolePolicyDocument"],
        policy=policy["PolicyDocument"] if policy is not None else {},
        tags={tag["Key"]: tag["Value"] for tag in role.get("Tags", ())},
    )


def _schedule(client: Any, name: str) -> Schedule | None:
    found = _found(client.get_schedule, "ResourceNotFound", Name=name, GroupName=GROUP)
    if found is None:
        return None
    target = found["Target"]
    return Schedule(
        name=name,
        expression=found["ScheduleExpression"],
        timezone=found.get("ScheduleExpressionTimezone", "UTC"),
        target_arn=target["Arn"],
        role_arn=target["RoleArn"],
        input=json.loads(target.get("Input", "{}")),
        state=found.get("State", "ENABLED"),
        window=found["FlexibleTimeWindow"]["Mode"],
        retry=dict(target.get("RetryPolicy", {})),
    )
