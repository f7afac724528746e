"""A trial: two versions of a state machine get runs, with one role, one companion and one input.

The role allows what both need. What can't serve both is refused: a parameter that the version
before does not know would end the runs that it still gets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from orchestration.deploy.account import refusal
from orchestration.deploy.aliases import settling
from orchestration.deploy.aliases.model import Route
from orchestration.deploy.permissions.policies import check_size
from orchestration.deploy.resources import Current, Desired, Role, Rule, owned
from orchestration.errors import DeployError, UnsupportedError

_MEMBER: Final = re.compile(r'^  ("(?:[^"\\]|\\.)*"): ', re.MULTILINE)
"""A parameter in the template of a rule's input."""


def shared(desired: Desired, current: Current, *, published: bool) -> Desired:
    """Return what a deployment makes for two versions, if it leaves two; else what it was.

    A :class:`~orchestration.errors.DeployError` tells what would break the version before.
    """
    before = settling.kept(desired.alias, current.aliases, published=published)
    if before is None:
        return desired
    if problems := list(_broken(desired, current, before)):
        raise refusal(
            f"pipeline {desired.pipeline} can't be tried beside version {before.version}, which "
            "gets most of the runs; deploy it without canary or linear",
            problems,
        )
    if desired.own_role:
        return desired
    return replace(
        desired,
        role=allowing(desired.role, current.role),
        transfer_role=allowing(desired.transfer_role, current.transfer_role),
        batch_role=allowing(desired.batch_role, current.batch_role),
    )


def allowing(role: Any, before: Role | None) -> Any:
    """Return a role that allows what it did before as well; the same, made again."""
    if role is None or before is None:
        return role
    statements = [*role.policy["Statement"]]
    contents = [_unnamed(each) for each in statements]
    for statement in before.policy.get("Statement", ()):
        if _unnamed(statement) not in contents:
            sid = str(statement.get("Sid", ""))
            while sid in {each["Sid"] for each in statements}:
                sid += "Before"
            statements.append({**statement, "Sid": sid})
    policy = {**role.policy, "Statement": statements}
    try:
        check_size(policy, f"role {role.name}")
    except UnsupportedError as error:
        raise DeployError(
            f"role {role.name} can't allow what two versions need ({error}); deploy the pipeline "
            "without canary or linear"
        ) from error
    return replace(role, policy=policy)


def _unnamed(statement: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in statement.items() if key != "Sid"}


def _broken(desired: Desired, current: Current, before: Route) -> Iterator[str]:
    """Yield what the version before needs, or can't take, of what both would share."""
    for role, wanted in (
        (current.transfer_role, desired.transfer_role),
        (current.batch_role, desired.batch_role),
    ):
        if role is not None and wanted is None and owned(role.tags, desired.pipeline):
            yield f"role {role.name} would be deleted, by which its runs copy data"
    companion, then = current.companion, desired.companion
    if companion.machine is not None and owned(companion.machine.tags, desired.pipeline):
        lost = _allowed(companion.role) - _allowed(then.role)
        if then.machine is None:
            yield f"{companion.machine.name}, which cleans up after its runs, would be deleted"
        elif companion.role is not None and lost:
            yield f"{companion.machine.name} would no longer find all that its runs leave"
    if desired.schedule is not None:
        yield from _unfit("schedule", set(desired.schedule.input), before)
    if desired.trigger is not None:
        yield from _unfit("trigger", _members(desired.trigger), before)


def _allowed(role: Role | None) -> set[tuple[str, str]]:
    """Return each action that a role allows, with each of its resources."""
    return {
        (action, resource)
        for statement in ({} if role is None else role.policy).get("Statement", ())
        for action in _several(statement["Action"])
        for resource in _several(statement["Resource"])
    }


def _several(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _members(rule: Rule) -> set[str]:
    """Return the parameters that a rule gives to the executions that it starts."""
    texts = [target.template.text for target in rule.targets if target.template is not None]
    return {json.loads(name) for text in texts for name in _MEMBER.findall(text)}


def _unfit(what: str, given: set[str], before: Route) -> Iterator[str]:
    declared = _declared(before)
    if declared is None:
        return
    for name in sorted(given - declared.keys()):
        yield f"the {what} would give parameter {name!r}, which it does not have"
    for name in sorted(name for name, required in declared.items() if required):
        if name not in given:
            yield f"the {what} would not give parameter {name!r}, without which it does not run"


def _declared(route: Route) -> dict[str, bool] | None:
    """Return the parameters that a version takes, and which it requires; of another's, nothing."""
    for state in route.definition.get("States", {}).values():
        declared = (state.get("Assign") or {}).get("declared")
        if isinstance(declared, list):
            return {each["name"]: "default" not in each for each in declared}
    return None
