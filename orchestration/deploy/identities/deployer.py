"""The person or program that deploys a pipeline to Step Functions: reads, makes, and removes.

Only what the pipeline has now may be made, and only what it no longer has may be removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestration.deploy.account import Account
from orchestration.deploy.identities.identity import Identity, identity
from orchestration.deploy.monitoring.logs import LogGroup
from orchestration.deploy.permissions import Statement
from orchestration.deploy.resources import (
    GROUP,
    Desired,
    Names,
    Role,
    Rule,
    Schedule,
    StateMachine,
)
from orchestration.graph import Workflow

_READ: Final = {
    "role": ("iam:GetRole", "iam:GetRolePolicy"),
    "state machine": ("states:DescribeStateMachine", "states:ListTagsForResource"),
    "schedule": ("scheduler:GetSchedule",),
    "rule": ("events:DescribeRule", "events:ListTargetsByRule"),
    "log group": ("logs:ListTagsForResource",),
    "alarm": ("cloudwatch:ListTagsForResource",),
}
_MADE: Final = {
    "role": ("iam:CreateRole", "iam:PutRolePolicy", "iam:TagRole", "iam:UpdateAssumeRolePolicy"),
    "state machine": (
        "states:CreateStateMachine",
        "states:DeleteStateMachineVersion",
        "states:ListExecutions",
        "states:ListStateMachineVersions",
        "states:PublishStateMachineVersion",
        "states:TagResource",
        "states:UpdateStateMachine",
    ),
    "schedule": ("scheduler:CreateSchedule", "scheduler:UpdateSchedule"),
    "rule": ("events:PutRule", "events:PutTargets", "events:RemoveTargets"),
    "log group": (
        "logs:CreateLogGroup",
        "logs:DeleteRetentionPolicy",
        "logs:PutRetentionPolicy",
        "logs:TagResource",
    ),
    "alarm": ("cloudwatch:PutMetricAlarm", "cloudwatch:TagResource"),
}
_ALIASES: Final = (
    "states:DeleteStateMachineAlias",
    "states:DescribeStateMachineAlias",
    "states:ListStateMachineAliases",
    "states:UntagResource",
)
"""Reading and removing an alias, which a pipeline may have had."""
_ALIASED: Final = ("states:CreateStateMachineAlias", "states:UpdateStateMachineAlias")
_REMOVED: Final = {
    "role": ("iam:DeleteRole", "iam:DeleteRolePolicy"),
    "state machine": ("states:DeleteStateMachine",),
    "schedule": ("scheduler:DeleteSchedule",),
    "rule": ("events:DeleteRule", "events:RemoveTargets"),
}


def deployer(desired: Desired, names: Names, workflow: Workflow, account: Account) -> Identity:
    """Return the least identity that can deploy, and deploy again after any change."""
    made = _made(desired, account)
    needed = [*_passed(desired), *_sources(desired, account), *_watched(desired, workflow, account)]
    if desired.log_group is not None:
        found = Statement("FindLogGroups", frozenset(["logs:DescribeLogGroups"]), frozenset("*"))
        needed.append(found.by("logging"))
        needed += _log_group(desired.log_group)
    needed += [*_aliases(desired), *_looks(names, account), *_missed(desired, workflow, account)]
    if desired.alarms:
        watched = frozenset(alarm.arn for alarm in desired.alarms)
        for verb, actions in (("Read", _READ["alarm"]), ("Make", _MADE["alarm"])):
            needed.append(Statement(f"{verb}Alarms", frozenset(actions), watched).by("alarms"))
    for kind, arns in _named(names, account).items():
        for arn in arns:
            what = f"{kind} {arn.rpartition('/')[2].rpartition(':')[2]}"
            tables = {"Read": _READ}
            if arn in made:
                tables["Make"] = _MADE
            elif not (desired.own_role and kind == "role"):  # Those of before stay.
                tables["Remove"] = _REMOVED
            for verb, table in tables.items():
                sid = f"{verb}{kind.title().replace(' ', '')}s"
                needed.append(Statement(sid, frozenset(table[kind]), frozenset([arn])).by(what))
    if not (desired.own_role or desired.role.policy["Statement"]):
        # An earlier deployment may have left one.
        emptied = frozenset(["iam:DeleteRolePolicy"]), frozenset([desired.role.arn])
        needed.append(Statement("EmptyRoles", *emptied).by(f"role {desired.role.name}"))
    return identity("deployer", "whoever runs orchestrate deploy", needed)


def _looks(names: Names, account: Account) -> Iterator[Statement]:
    """Yield what looking for alarms and for an earlier name of the pipeline needs.

    A deployment goes without either where it is denied, and then tells less.
    """
    machines = frozenset(["states:ListStateMachines"])
    yield Statement("FindStateMachines", machines, frozenset("*")).by("an earlier name")
    alarms = frozenset(account.arn("cloudwatch", f"alarm:{name}") for name in names.alarms)
    yield Statement("SeeAlarms", frozenset(["cloudwatch:DescribeAlarms"]), alarms).by("alarms")


def _missed(desired: Desired, workflow: Workflow, account: Account) -> Iterator[Statement]:
    """Yield what finding and starting the runs needs that a new schedule has missed."""
    if workflow.schedule is None or not workflow.schedule.catchup:
        return
    name = desired.machine.name
    found = frozenset([account.arn("states", f"execution:{name}:*")])
    machine = frozenset([desired.machine.arn])
    for sid, action, arns in (
        ("ReadRuns", "DescribeExecution", found),
        ("StartMissedRuns", "StartExecution", machine),
    ):
        yield Statement(sid, frozenset([f"states:{action}"]), arns).by(f"schedule {name}")


def _aliases(desired: Desired) -> Iterator[Statement]:
    """Yield what an alias needs: IAM asks for the state machine."""
    arns = frozenset([desired.machine.arn])
    what = f"state machine {desired.machine.name}"
    yield Statement("RemoveAliases", frozenset(_ALIASES), arns).by(what)
    if desired.alias is not None:
        yield Statement("MakeAliases", frozenset(_ALIASED), arns).by(f"alias {desired.alias.name}")


def _log_group(group: LogGroup) -> Iterator[Statement]:
    """Yield what reading and making a log group needs.

    Some actions are checked with ``:*`` behind the ARN of the group, and those of tags without.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/iam-access-control-overview-cwl.html
    """
    arns = frozenset([group.arn, f"{group.arn}:*"])
    for verb, actions in (("Read", _READ["log group"]), ("Make", _MADE["log group"])):
        yield Statement(f"{verb}LogGroups", frozenset(actions), arns).by(f"log group {group.name}")


def _named(names: Names, account: Account) -> dict[str, list[str]]:
    """Return the ARNs of everything that has one of a pipeline's names."""
    companion = names.companion
    roles = [names.role, names.schedule_role, names.trigger_role, companion.role]
    roles += [companion.starter, names.transfer_role or "", names.batch_role or ""]
    rules = [companion.name, *names.notices, names.trigger]
    schedules = (names.schedule, companion.name)
    return {
        "role": [account.role_arn(name) for name in roles if name],
        "state machine": [names.machine_arn, companion.machine_arn],
        "schedule": [account.arn("scheduler", f"schedule/{GROUP}/{name}") for name in schedules],
        "rule": [account.arn("events", f"rule/{name}") for name in rules if name],
    }


def _made(desired: Desired, account: Account) -> set[str]:
    """Return the ARNs of what a deployment makes."""
    arns = set()
    for each in _resources(desired):
        match each:
            case Role() | StateMachine():
                arns.add(each.arn)
            case Schedule():
                arns.add(account.arn("scheduler", f"schedule/{GROUP}/{each.name}"))
            case Rule():
                arns.add(account.arn("events", f"rule/{each.name}"))
    return arns


def _resources(desired: Desired) -> Iterator[Role | StateMachine | Schedule | Rule]:
    companion = desired.companion
    every = (
        None if desired.own_role else desired.role,
        desired.machine,
        desired.schedule_role,
        desired.schedule,
        desired.trigger_role,
        desired.trigger,
        desired.transfer_role,
        desired.batch_role,
        companion.role,
        companion.machine,
        companion.starter,
        companion.rule,
        companion.sweep,
        *desired.notices,
    )
    return (each for each in every if each is not None)


def _passed(desired: Desired) -> Iterator[Statement]:
    """Yield the roles that a deployment hands to services, each with the services alone."""
    companion = desired.companion
    for machine in (desired.machine, companion.machine):
        if machine is not None:
            yield _pass(machine.role_arn, "states", f"state machine {machine.name}")
    for schedule in (desired.schedule, companion.sweep):
        if schedule is not None:
            yield _pass(schedule.role_arn, "scheduler", f"schedule {schedule.name}")
    for rule in (companion.rule, desired.trigger):
        if rule is not None:
            for target in rule.targets:
                yield _pass(target.role_arn, "events", f"rule {rule.name}")


def _pass(role: str, service: str, what: str) -> Statement:
    to = ("StringEquals", "iam:PassedToService", frozenset([f"{service}.amazonaws.com"]))
    return Statement(
        f"PassRoleTo{service.title()}", frozenset(["iam:PassRole"]), frozenset([role]), (to,)
    ).by(what)


def _sources(desired: Desired, account: Account) -> Iterator[Statement]:
    for folder in desired.sources:
        bucket = f"arn:{account.partition}:s3:::{folder.bucket}"
        sent = frozenset([f"{bucket}/{folder.prefix}*"])
        like = ("StringLike", "s3:prefix", frozenset([f"{folder.prefix}*"]))
        looked = Statement("FindCode", frozenset(["s3:ListBucket"]), frozenset([bucket]), (like,))
        yield looked.by(*folder.used_by)
        yield Statement("SendCode", frozenset(["s3:PutObject"]), sent).by(*folder.used_by)


def _watched(desired: Desired, workflow: Workflow, account: Account) -> Iterator[Statement]:
    """Yield what reading the topics and the bucket needs that a pipeline's rules depend on."""
    told = [[target.arn for target in rule.targets] for rule in desired.notices]
    told += [list(alarm.topics) for alarm in desired.alarms]
    for topics in map(frozenset, told):
        yield Statement("ReadTopics", frozenset(["sns:GetTopicAttributes"]), topics).by("notify")
    bucket = None if workflow.trigger is None else workflow.trigger.bucket
    if bucket is not None:
        arn = frozenset([f"arn:{account.partition}:s3:::{bucket}"])
        actions = frozenset(["s3:GetBucketNotification", "s3:ListBucket"])
        yield Statement("ReadTrigger", actions, arn).by("trigger")
    if desired.own_role:
        arn = frozenset([desired.role.arn])
        yield Statement("ReadOwnRole", frozenset(["iam:GetRole"]), arn).by("role")
