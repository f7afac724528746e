"""Roles: they exist, and the services that they are handed to may assume them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestration.deploy.own_role import admitted
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, Rule
from orchestration.preflight.handed import Handed, handed
from orchestration.preflight.reader import looked

_RULE: Final = Rule(
    check="roles",
    why="a service runs a job only under a role of the account that it can assume",
    sources=("https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html",),
)


def roles(examination: Examination) -> Iterator[Finding]:
    """Yield the roles that requests hand on and that their services can't assume."""
    for each in handed(examination):
        look = _role(examination, each)
        yield from looked("roles", each.where, f"role {each.arn}", look)


def _role(examination: Examination, each: Handed) -> Iterator[Finding]:
    if each.arn.split(":")[4:5] != [examination.account.id]:
        what = f"role {each.arn} is not in account {examination.account.id}"
        yield _RULE.broken(
            each.when, each.where, what, "name a role of the account that runs are in"
        )
        return
    name = each.arn.rpartition("/")[2]
    answer = examination.reader.ask("iam", "GetRole", absent=("NoSuchEntity",), RoleName=name)
    role = None if answer is None else answer["Role"]
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
