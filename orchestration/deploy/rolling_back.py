"""The way back to what a state machine was before a deployment: one update, of one call.

Each deployment publishes a version. Where an alias starts runs, it leads to an earlier version
again. Else going back makes the definition, the role and the logging of an earlier version those of
the state machine again, and publishes that as a version as well, whose description names the
earlier one. Executions that are running go on as they began.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any, Final

from orchestration.deploy.account import Account, Clients
from orchestration.deploy.aliases.model import Alias
from orchestration.deploy.applying import versions
from orchestration.deploy.applying.aliases import lead
from orchestration.deploy.composing import names_of
from orchestration.deploy.reading import machine_of, starting_alias, state_machine
from orchestration.deploy.resources import Change, owned
from orchestration.errors import DeployError

_AGAIN: Final = re.compile(r"version (\d+) again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """A state machine, or its alias, that would be taken back, as it was found in the account."""

    pipeline: str
    account: Account
    session: Clients
    change: Change
    version: int
    """The number of the version that it would be, or lead to, again."""
    published: str
    """The day on which that was published."""
    running: tuple[str, ...]
    """The ARNs of executions that are running, which go on."""

    def apply(self) -> None:
        """Make it what it was; it is one call, which is made or not."""
        from botocore.exceptions import BotoCoreError, ClientError

        states = self.session.client("stepfunctions")
        try:
            if isinstance(self.change.after, Alias):
                lead(states, self.change, self.change.after)
            else:
                self._update(states)
        except (BotoCoreError, ClientError) as error:
            raise DeployError(f"AWS refused to {self.change.summary}: {error}") from error

    def _update(self, states: Any) -> None:
        arn = self.account.arn("states", f"stateMachine:{self.pipeline}")
        then = states.describe_state_machine(stateMachineArn=f"{arn}:{self.version}")
        versions.publish(states, arn)
        states.update_state_machine(
            stateMachineArn=arn,
            definition=then["definition"],
            roleArn=then["roleArn"],
            loggingConfiguration=then["loggingConfiguration"],
            tracingConfiguration=then["tracingConfiguration"],
            publish=True,
            versionDescription=f"version {self.version} again",
        )
        versions.prune(states, arn)


def rollback(pipeline: str, *, session: Clients, version: int | None = None) -> Rollback:
    """Find what a deployed pipeline was before, or was as a version; changes nothing.

    Raises a :class:`~orchestration.errors.DeployError` where there is nothing to go back to.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    account = Account.of(session)
    states = session.client("stepfunctions")
    machine, _ = state_machine(states, names_of(pipeline, account).machine_arn)
    if machine is None or not owned(machine.tags, pipeline):
        raise DeployError(
            f"pipeline {pipeline} is not deployed to {account.id} in {account.region}"
        )
    try:
        alias = starting_alias(states, machine)
        chosen = _chosen(states, machine.arn, alias, version)
        then = states.describe_state_machine(stateMachineArn=f"{machine.arn}:{chosen}")
        pages = states.get_paginator("list_executions").paginate(
            stateMachineArn=machine.arn, statusFilter="RUNNING"
        )
        running = tuple(each["executionArn"] for page in pages for each in page["executions"])
    except (BotoCoreError, ClientError) as error:
        raise DeployError(f"the versions of {pipeline} can't be read: {error}") from error
    # Tags belong to the state machine, and to none of its versions.
    again = machine_of({**then, "stateMachineArn": machine.arn})
    change = Change(machine, replace(again, tags=machine.tags))
    if alias is not None:
        change = Change(alias, alias.back(chosen))
    return Rollback(
        pipeline=pipeline,
        account=account,
        session=session,
        change=change,
        version=chosen,
        published=f"{then['creationDate'].astimezone(UTC):%Y-%m-%d %H:%M %Z}",
        running=running,
    )


def _chosen(states: Any, machine_arn: str, alias: Alias | None, wanted: int | None) -> int:
    """Return the number of the version to go back to: the one wanted, or the one before."""
    numbers = [int(arn.rpartition(":")[2]) for arn in versions.listed(states, machine_arn)]
    name = machine_arn.rpartition(":")[2]
    if not numbers:
        raise DeployError(
            f"state machine {name} has no versions yet; each deployment from now on leaves one to "
            "go back to"
        )
    if wanted is not None:
        if wanted not in numbers:
            listed = ", ".join(map(str, numbers))
            raise DeployError(f"version {wanted} of {name} does not exist; there are {listed}")
        return wanted
    if alias is not None:
        return _before(alias, numbers, name)
    return _last(states, machine_arn, numbers)


def _before(alias: Alias, numbers: Sequence[int], name: str) -> int:
    """Return what an alias led to before, or the older one of two; else the version below."""
    last = min(route.version or 0 for route in alias.routes)
    if len(alias.routes) > 1:
        return last
    known = (number for number in alias.before if number in numbers)
    # Of an alias that is older than such notes, or has been led back to their end.
    below = (number for number in numbers if number < last)
    for number in (*known, *below):
        return number
    raise DeployError(f"version {last} is the oldest of {name} that is kept")


def _last(states: Any, machine_arn: str, numbers: Sequence[int]) -> int:
    """Return the version that a state machine was before its last deployment."""

    def described(number: int) -> Any:
        return states.describe_state_machine(stateMachineArn=f"{machine_arn}:{number}")

    newest = described(numbers[0])
    now = states.describe_state_machine(stateMachineArn=machine_arn)
    executed = machine_of(now).executed()
    if machine_of(newest).executed() != executed:
        return numbers[0]  # Someone has changed it since.
    last = _original(newest, numbers[0], numbers)
    for number in numbers:
        # One that differs in the carried file alone was published before a deployment.
        if number < last and machine_of(version := described(number)).executed() != executed:
            return _original(version, number, numbers)
    name = machine_arn.rpartition(":")[2]
    raise DeployError(f"version {last} is the oldest of {name} that is kept")


def _original(version: Mapping[str, Any], number: int, kept: Sequence[int]) -> int:
    """Return the version that one says to be again, as long as that is kept; else itself."""
    match = _AGAIN.fullmatch(version.get("description", ""))
    return int(match[1]) if match and int(match[1]) in kept else number
