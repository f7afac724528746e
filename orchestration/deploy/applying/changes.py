"""Changes in an account, each safe to make twice."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, assert_never

from orchestration.deploy.account import Clients
from orchestration.deploy.aliases.model import Alias
from orchestration.deploy.applying import versions
from orchestration.deploy.applying.aliases import put_alias
from orchestration.deploy.applying.calling import Sleep, once_known, unless
from orchestration.deploy.applying.monitoring import put_alarm, put_log_group
from orchestration.deploy.applying.requests import (
    machine_request,
    monitoring_request,
    role_request,
    rule_request,
    schedule_request,
)
from orchestration.deploy.events.missed import Missed
from orchestration.deploy.monitoring.alarms import Alarm
from orchestration.deploy.monitoring.logs import LogGroup
from orchestration.deploy.reading import POLICY
from orchestration.deploy.resources import GROUP, Change, Role, Rule, Schedule, StateMachine
from orchestration.deploy.sources import SourceFolder, send
from orchestration.errors import DeployError


def apply(
    changes: Iterable[Change],
    session: Clients,
    *,
    sleep: Sleep = time.sleep,
    on_change: Callable[[Change], None] = lambda _: None,
) -> None:
    """Make changes, in order, and report each to ``on_change``.

    A :class:`~orchestration.errors.DeployError` names the change that AWS refused; those before it
    are made, and deploying again continues from there.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    for change in changes:
        try:
            _apply(change, session, sleep)
        except (BotoCoreError, ClientError) as error:
            raise DeployError(
                f"AWS refused to {change.summary}: {error}; the changes before it are made, so "
                "do it again once that is fixed"
            ) from error
        on_change(change)


def _apply(change: Change, session: Clients, sleep: Sleep) -> None:
    subject = change.subject
    match subject:
        case SourceFolder():
            send(subject, session.client("s3"))
        case Role():
            _put_role(session.client("iam"), change, subject)
        case LogGroup():
            put_log_group(session.client("logs"), change, subject)
        case Alarm():
            put_alarm(session.client("cloudwatch"), change, subject)
        case StateMachine():
            _put_machine(session.client("stepfunctions"), change, subject, sleep)
        case Alias():
            put_alias(session.client("stepfunctions"), change, subject)
        case Rule():
            _put_rule(session.client("events"), change, subject, sleep)
        case Schedule():
            _put_schedule(session.client("scheduler"), change, subject, sleep)
        case Missed():
            _start_missed(session.client("stepfunctions"), subject)
        case _:
            assert_never(subject)


def _start_missed(client: Any, missed: Missed) -> None:
    """Start the runs that a schedule has missed until now; one that was started before goes on."""
    for request in missed.requests(datetime.now(tz=UTC)):
        unless("ExecutionAlreadyExists", client.start_execution, **request)


def _put_role(client: Any, change: Change, role: Role) -> None:
    if change.after is None:
        _delete_role(client, role)
        return
    request = role_request(role)
    tags, trust = request["Tags"], request["AssumeRolePolicyDocument"]
    old = change.before if isinstance(change.before, Role) else None
    if old is None:
        if not unless("EntityAlreadyExists", client.create_role, **request):
            client.update_assume_role_policy(RoleName=role.name, PolicyDocument=trust)
    else:
        if old.trust != role.trust:
            client.update_assume_role_policy(RoleName=role.name, PolicyDocument=trust)
        if old.tags != role.tags:
            client.tag_role(RoleName=role.name, Tags=tags)
    if old is not None and old.policy == role.policy:
        return
    if role.policy["Statement"]:
        client.put_role_policy(
            RoleName=role.name, PolicyName=POLICY, PolicyDocument=json.dumps(role.policy)
        )
    elif old is not None:
        _delete_policy(client, role)


def _delete_role(client: Any, role: Role) -> None:
    _delete_policy(client, role)
    unless("NoSuchEntity", client.delete_role, RoleName=role.name)


def _delete_policy(client: Any, role: Role) -> None:
    unless("NoSuchEntity", client.delete_role_policy, RoleName=role.name, PolicyName=POLICY)


def _put_machine(client: Any, change: Change, machine: StateMachine, sleep: Sleep) -> None:
    if change.after is None:
        client.delete_state_machine(stateMachineArn=machine.arn)
        return
    request = {**machine_request(machine), "publish": True}
    old = change.before if isinstance(change.before, StateMachine) else None
    if old is None and once_known(
        sleep, "StateMachineAlreadyExists", client.create_state_machine, **request
    ):
        return
    if old is None or replace(old, tags=machine.tags) != machine:
        changed = {key: request[key] for key in ("definition", "roleArn")}
        # Of another carried file alone, nobody would want to go back.
        publish = old is None or old.executed() != machine.executed()
        changed |= {**monitoring_request(machine), "publish": publish}
        if publish:
            versions.publish(client, machine.arn)
        once_known(sleep, "", client.update_state_machine, stateMachineArn=machine.arn, **changed)
        versions.prune(client, machine.arn)
    if old is None or old.tags != machine.tags:
        client.tag_resource(resourceArn=machine.arn, tags=request["tags"])


def _put_schedule(client: Any, change: Change, schedule: Schedule, sleep: Sleep) -> None:
    if change.after is None:
        unless("ResourceNotFound", client.delete_schedule, Name=schedule.name, GroupName=GROUP)
        return
    request = schedule_request(schedule)
    created = change.before is None and once_known(
        sleep, "Conflict", client.create_schedule, **request
    )
    if not created:
        once_known(sleep, "", client.update_schedule, **request)


def _put_rule(client: Any, change: Change, rule: Rule, sleep: Sleep) -> None:
    wanted = () if change.after is None else rule.targets
    before = change.before.targets if isinstance(change.before, Rule) else ()
    if gone := sorted({t.id for t in before} - {t.id for t in wanted}):
        unless("ResourceNotFound", client.remove_targets, Rule=rule.name, Ids=gone)
    if change.after is None:
        unless("ResourceNotFound", client.delete_rule, Name=rule.name)
        return
    client.put_rule(**rule_request(rule))
    targets = [target.request() for target in wanted]
    once_known(sleep, "", partial(_put_targets, client), Rule=rule.name, Targets=targets)


def _put_targets(client: Any, **request: Any) -> None:
    """Put targets; EventBridge answers those that it refuses without an error."""
    for entry in client.put_targets(**request).get("FailedEntries", ()):
        raise DeployError(
            f"EventBridge refused target {entry.get('TargetId')} of rule {request['Rule']}: "
            f"{entry.get('ErrorCode')}: {entry.get('ErrorMessage')}"
        )
