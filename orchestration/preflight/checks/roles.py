"""Roles: they exist, and the services that they are handed to may assume them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from orchestration.deploy.own_role import admitted
from orchestration.deploy.permissions.patterns import ANY
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, Rule
from orchestration.preflight.handed import Handed, handed
from orchestration.preflight.places import place
from orchestration.preflight.reader import looked
from orchestration.preflight.requests import Request

_RULE: Final = Rule(
    check="roles",
    why="a service runs a job only under a role of the account that it can assume",
    sources=("https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html",),
)


_ASSUMED: Final = Rule(
    check="roles",
    why="a request is sent as a role only if the role trusts whoever sends it",
    sources=(
        "https://docs.aws.amazon.com/step-functions/latest/dg/"
        "concepts-access-cross-acct-resources.html",
    ),
)
_SHOWN: Final = "`orchestrate iam` prints its trust policy"


def roles(examination: Examination) -> Iterator[Finding]:
    """Yield the roles that can't be assumed: by services, or by whoever sends requests as them."""
    for each in handed(examination):
        look = _role(examination, each)
        yield from looked("roles", each.where, f"role {each.arn}", look)
    for role, request in {each.role: each for each in examination.requests}.items():
        if role and ANY not in role:
            where = place(examination.pipeline, request.step, request.operation.assumes)
            look = _assumed(examination, role, where, request)
            yield from looked("roles", where, f"role {role}", look)


def _assumed(examination: Examination, arn: str, where: str, request: Request) -> Iterator[Finding]:
    account = examination.account
    if arn.split(":")[4:5] != [account.id]:
        what = f"role {arn} is of another account, so whom it trusts can't be read"
        mend = f"let it trust whoever runs the pipeline: {_SHOWN}"
        yield _ASSUMED.broken(request.calls, where, what, mend, "not checked")
        return
    role = _read(examination, arn)
    if role is None or role["Arn"] != arn:
        what = f"role {arn} does not exist"
        yield _ASSUMED.broken(request.calls, where, what, "create it, or name another")
        return
    trusted = set(admitted(role["AssumeRolePolicyDocument"], "AWS"))
    if not any(each in ("*", account.id) or f"::{account.id}:" in each for each in trusted):
        what = f"role {arn} trusts nobody of account {account.id}"
        yield _ASSUMED.broken(request.calls, where, what, f"let it: {_SHOWN}")


def _read(examination: Examination, arn: str) -> Any:
    name = arn.rpartition("/")[2]
    answer = examination.reader.ask("iam", "GetRole", absent=("NoSuchEntity",), RoleName=name)
    return None if answer is None else answer["Role"]


def _role(examination: Examination, each: Handed) -> Iterator[Finding]:
    if each.arn.split(":")[4:5] != [examination.account.id]:
        what = f"role {each.arn} is not in account {examination.account.id}"
        yield _RULE.broken(
            each.when, each.where, what, "name a role of the account that runs are in"
        )
        return
    role = _read(examination, each.arn)
    if role is None or role["Arn"] != each.arn:
        there = "" if role is None else f"; there is {role['Arn']}"
        yield _RULE.broken(
            each.when,
            each.where,
            f"role {each.arn} does not exist{there}",
            "create it, or name another",
        )
    elif each.service not in set(admitted(role["AssumeRolePolicyDocument"])):
        what = f"role {each.arn} does not trust {each.service}"
        yield _RULE.broken(
            each.when,
            each.where,
            what,
            f"let its trust policy allow sts:AssumeRole to {each.service}",
        )
