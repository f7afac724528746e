"""A deployment under a role of the user's own: none is made; its needs are shown and checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from orchestration.deploy.account import Account, Clients
from orchestration.deploy.resources import Companion, Current, Desired, Role, Rule, owned
from orchestration.errors import DeployError

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

_ARN: Final = re.compile(r"arn:(?P<partition>[\w-]+):iam::(?P<account>\d{12}):role/(?P<name>\S+)")


def named(pipeline: Pipeline, arn: str | None) -> str | None:
    """Return the role to deploy under: one that was asked for, else the pipeline's own."""
    options = pipeline.step_functions
    return options.role if arn is None and options is not None else arn


def under(desired: Desired, arn: str, account: Account) -> Desired:
    """Put one role in the place of all that a deployment would make for the pipeline's machines.

    Its policy and its trust are what it needs: those of the roles that it stands for, together.
    """
    companion, schedule, trigger = desired.companion, desired.schedule, desired.trigger
    roles = [desired.role, desired.schedule_role, desired.trigger_role]
    roles += [companion.role, companion.starter]
    made = [role for role in roles if role is not None]
    role = Role(
        name=_name(arn, account),
        arn=arn,
        trust=_trusts(made),
        policy=_together([role.policy for role in made]),
    )
    return replace(
        desired,
        role=role,
        own_role=True,
        machine=replace(desired.machine, role_arn=arn),
        schedule_role=None,
        schedule=None if schedule is None else replace(schedule, role_arn=arn),
        trigger_role=None,
        trigger=None if trigger is None else _rule(trigger, arn),
        companion=_companion(companion, arn),
    )


def _rule(rule: Rule, arn: str) -> Rule:
    return replace(rule, targets=tuple(replace(t, role_arn=arn) for t in rule.targets))


def _name(arn: str, account: Account) -> str:
    """Return the name of a role, which is the last part of its path."""
    match = _ARN.fullmatch(arn)
    if match is None:
        raise DeployError(f"expected the ARN of a role, {account.role_arn('NAME')}, got {arn!r}")
    if (match["partition"], match["account"]) != (account.partition, account.id):
        raise DeployError(
            f"role {arn} is not in account {account.id} ({account.partition}); a state machine "
            "takes a role of its own account"
        )
    return match["name"].rpartition("/")[2]


def _companion(companion: Companion, arn: str) -> Companion:
    machine, rule, sweep = companion.machine, companion.rule, companion.sweep
    return Companion(
        machine=None if machine is None else replace(machine, role_arn=arn),
        rule=None if rule is None else _rule(rule, arn),
        sweep=None if sweep is None else replace(sweep, role_arn=arn),
    )


def _together(policies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one policy that allows what several do; statements of one name are numbered."""
    used: dict[str, int] = {}
    statements = []
    for policy in policies:
        for statement in policy["Statement"]:
            sid = statement["Sid"]
            used[sid] = count = used.get(sid, 0) + 1
            statements.append({**statement, "Sid": sid if count == 1 else f"{sid}Too{count}"})
    return {"Version": "2012-10-17", "Statement": statements}


def _trusts(roles: Sequence[Role]) -> dict[str, Any]:
    """Return one trust that admits whoever is admitted by several, each statement once."""
    statements: list[Any] = []
    for role in roles:
        statements += [each for each in role.trust["Statement"] if each not in statements]
    return {"Version": "2012-10-17", "Statement": statements}


def without_roles(current: Current) -> Current:
    """Leave out the roles that an earlier deployment made: none is changed or deleted."""
    companion = replace(current.companion, role=None, starter=None)
    return replace(current, role=None, schedule_role=None, trigger_role=None, companion=companion)


@dataclass(frozen=True, slots=True)
class Readiness:
    """Obstacles between a role and those that shall use it."""

    problems: tuple[str, ...] = ()
    """Reasons for which nothing would start."""
    warnings: tuple[str, ...] = ()
    """Facts that can't be read, and roles that stay behind."""


def readiness(desired: Desired, current: Current, session: Clients) -> Readiness:
    """Read whether the role exists and trusts the services that need it."""
    left = tuple(_left(desired, current))
    role = desired.role
    from botocore.exceptions import ClientError

    try:
        document = session.client("iam").get_role(RoleName=role.name)["Role"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchEntity":
            return Readiness((f"role {role.arn} does not exist",), left)
        unread = f"the trust of role {role.arn} can't be read: {error}"
        return Readiness((), (unread, *left))
    if document["Arn"] != role.arn:
        return Readiness((f"role {role.name} has the ARN {document['Arn']}, not {role.arn}",), left)
    trusted = set(admitted(document["AssumeRolePolicyDocument"]))
    problems = tuple(
        f"role {role.arn} does not trust {service}; let its trust policy allow sts:AssumeRole to it"
        for service in dict.fromkeys(_principals(role.trust))
        if service not in trusted
    )
    return Readiness(problems, left)


def _left(desired: Desired, current: Current) -> Iterator[str]:
    companion = current.companion
    roles = [current.role, current.schedule_role, current.trigger_role]
    for role in (*roles, companion.role, companion.starter):
        if role is not None and role.arn != desired.role.arn and owned(role.tags, desired.pipeline):
            yield (
                f"role {role.name}, which an earlier deployment made, stays: executions may still "
                "run under it; delete it when none does"
            )


def admitted(document: Mapping[str, Any], kind: str = "Service") -> Iterator[str]:
    """Yield the services, or the principals of ``AWS``, that a trust policy names.

    Its conditions are not looked at.
    """
    for statement in _several(document.get("Statement")):
        actions = {str(action).lower() for action in _several(statement.get("Action"))}
        if statement.get("Effect") == "Allow" and actions & {"sts:assumerole", "sts:*", "*"}:
            yield from _principals({"Statement": [statement]}, kind)


def _principals(document: Mapping[str, Any], kind: str = "Service") -> list[str]:
    named = [statement.get("Principal") for statement in document["Statement"]]
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html:
    # a bare star is every principal, as {"AWS": "*"} is.
    principals = [{"AWS": "*"} if each == "*" else each for each in named]
    return [
        str(each)
        for principal in principals
        if isinstance(principal, Mapping)
        for each in _several(principal.get(kind))
    ]


def _several(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
