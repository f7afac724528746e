"""The end of a deployment: everything that deploying made is deleted, and nothing else.

Data, code, models, endpoints and logs stay; the log group of executions goes only on request. Runs
are ended only when that is asked for, and cleaned up after by the companion before it goes itself.
File systems that outlive their run (``keep_for_h``) need a word of their own, since nobody would
delete them later. What remains of a destruction that was cut off is destroyed by the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never

from orchestration.backends.companion import SUFFIX
from orchestration.cleanup import MACHINE, PIPELINE
from orchestration.deploy.account import Account, Clients, refusal
from orchestration.deploy.aliases.model import Alias, starts
from orchestration.deploy.applying import Sleep, apply
from orchestration.deploy.comparing import watches
from orchestration.deploy.composing import names_of
from orchestration.deploy.events.missed import Missed
from orchestration.deploy.executions.cleaning import POLL_S, clean_up
from orchestration.deploy.monitoring.alarms import Alarm
from orchestration.deploy.monitoring.composing import logs_to_own
from orchestration.deploy.monitoring.logs import LogGroup
from orchestration.deploy.reading import current
from orchestration.deploy.resources import (
    Change,
    Companion,
    Current,
    Names,
    Resource,
    Role,
    Rule,
    Schedule,
    StateMachine,
    owned,
)
from orchestration.deploy.sources import SourceFolder
from orchestration.errors import DeployError

_PATIENCE_S: Final = 900.0
"""A file system takes minutes to be gone, an execution that was stopped seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destruction:
    """A deployment that would be destroyed, as it was found in the account."""

    pipeline: str
    account: Account
    session: Clients
    starters: tuple[Change, ...]
    """The schedule and the rule that start runs, with their roles, and the alias: they go first."""
    rest: tuple[Change, ...]
    running: tuple[str, ...]
    """The ARNs of executions that are running."""
    file_systems: tuple[str, ...]
    """The ids of file systems that runs have made and that are still there."""
    machine: StateMachine | None
    log_group: str = ""
    """The name of the log group that stays; empty: none does."""
    stays: tuple[str, ...] = ()
    """Resources under these names that deploying has not made: ``role runner``."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """Everything that deploying made and that is there, in the order in which it goes."""
        return (*self.starters, *self.rest)

    @property
    def starts_by_schedule(self) -> bool:
        """True if a schedule starts its runs."""
        return any(isinstance(each.subject, Schedule) for each in self.starters)

    def obstacles(self, *, stop: bool, file_systems: bool) -> tuple[str, ...]:
        """Return why it can't be destroyed; ``stop`` and ``file_systems`` permit what they name."""
        problems = []
        if self.running and not stop:
            problems.append(_in_the_way(self.running))
        if self.file_systems and not file_systems:
            problems.append(
                f"file systems {', '.join(self.file_systems)} would stay and cost on, without a "
                "companion that deletes them; delete them too with --file-systems, or wait until "
                "their hours are over"
            )
        return tuple(problems)

    def apply(
        self,
        *,
        stop: bool = False,
        file_systems: bool = False,
        sleep: Sleep = time.sleep,
        on_change: Callable[[Change], None] = lambda _: None,
    ) -> None:
        """Destroy it. A :class:`~orchestration.errors.DeployError` has what is in the way."""
        from botocore.exceptions import BotoCoreError, ClientError

        if problems := self.obstacles(stop=stop, file_systems=file_systems):
            raise refusal(f"pipeline {self.pipeline} can't be destroyed", problems)
        apply(self.starters, self.session, sleep=sleep, on_change=on_change)
        try:
            self._end_runs(sleep, stop=stop)
            if self.file_systems:
                self._delete_file_systems(sleep)
        except (BotoCoreError, ClientError) as error:
            raise DeployError(f"runs of {self.pipeline} can't be cleaned up: {error}") from error
        apply(self.rest, self.session, sleep=sleep, on_change=on_change)

    def _end_runs(self, sleep: Sleep, *, stop: bool) -> None:
        """Stop what runs, and let the companion clean up; without the machine that was done.

        Executions may have begun since :attr:`running` was read, and ``stop`` counts for them, too.
        """
        if self.machine is None:
            return
        states = self.session.client("stepfunctions")
        running = _running(states, self.machine.arn)
        if running and not stop:
            headline = f"of pipeline {self.pipeline}, only what starts runs is destroyed yet"
            raise refusal(headline, [f"{_in_the_way(running)}, and do this again for the rest"])
        for arn in running:
            cause = "The deployment of its pipeline is being destroyed."
            states.stop_execution(executionArn=arn, error="Destroyed", cause=cause)
        _until(lambda: not _running(states, self.machine_arn), "its executions end", sleep)
        if (reason := clean_up(states, self.machine_arn, sleep)) is not None:
            raise DeployError(
                f"what runs of {self.pipeline} have left could not be cleaned up: {reason}; the "
                "state machine and its companion stay"
            )
        # A sweep that began by itself needs its role until it ends.
        companion = f"{self.machine_arn}{SUFFIX}"
        _until(lambda: not _running(states, companion), "its companion ends", sleep)

    @property
    def machine_arn(self) -> str:
        """The ARN of the state machine, also where it is gone."""
        return self.account.arn("states", f"stateMachine:{self.pipeline}")

    def _delete_file_systems(self, sleep: Sleep) -> None:
        fsx = self.session.client("fsx")
        for each in _file_systems(fsx, self.pipeline, self.machine_arn):
            if each["Lifecycle"] != "DELETING":
                fsx.delete_file_system(FileSystemId=each["FileSystemId"])
        _until(
            lambda: not _file_systems(fsx, self.pipeline, self.machine_arn),
            "its file systems are gone",
            sleep,
        )


def destruction(pipeline: str, *, session: Clients, logs: bool = False) -> Destruction:
    """Find everything that was deployed under a pipeline's name; changes nothing.

    With ``logs`` that includes the log group, with the records of all executions.

    A state machine of that name that was not deployed for this pipeline is a
    :class:`~orchestration.errors.DeployError`; other resources that were not are left out.
    """
    account = Account.of(session)
    names = names_of(pipeline, account)
    group = names.log_group
    names = replace(names, log_group=group if logs else "")
    now = current(session, names)
    machine, usual = now.machine, None
    if machine is not None:
        if not owned(machine.tags, pipeline):
            raise DeployError(
                f"state machine {machine.name} was not deployed for pipeline {pipeline}, so "
                "nothing of it is destroyed"
            )
        used = machine.role_arn.rpartition("/")[2]
        if used != names.role:
            # A role of the user's own, or of another name; that of the usual name may be there too.
            usual, now = now.role, current(session, replace(names, role=used))
    states = session.client("stepfunctions")
    systems = _file_systems(session.client("fsx"), pipeline, names.machine_arn)
    starters, rest = (
        [Change(each, None) for each in found if each is not None]
        for found in (_starters(now), (usual, *_rest(now)))
    )
    return Destruction(
        pipeline=pipeline,
        account=account,
        session=session,
        starters=tuple(each for each in starters if _ours(each.subject, pipeline, names)),
        rest=tuple(each for each in rest if _ours(each.subject, pipeline, names)),
        running=() if machine is None else _running(states, machine.arn),
        file_systems=tuple(each["FileSystemId"] for each in systems),
        machine=machine,
        log_group=group if not logs and machine is not None and logs_to_own(machine) else "",
        stays=tuple(
            f"{each.resource} {each.name}"
            for each in (*starters, *rest)
            if not _ours(each.subject, pipeline, names)
        ),
    )


def _starters(now: Current) -> Iterator[Resource | None]:
    yield now.schedule
    yield now.schedule_role
    yield now.trigger
    yield now.trigger_role
    yield from now.aliases


def _rest(now: Current) -> Iterator[Resource | None]:
    """Yield what remains; a role before its machine, since only that knows the role's name."""
    companion: Companion = now.companion
    yield now.role
    yield now.machine
    yield now.transfer_role
    yield now.batch_role
    yield companion.sweep
    yield companion.rule
    yield companion.starter
    yield companion.role
    yield companion.machine
    yield from now.notices
    yield from now.alarms
    yield now.log_group


def _ours(resource: Resource, pipeline: str, names: Names) -> bool:
    """Return whether a resource was deployed for the pipeline."""
    # A rule whose targets are gone is one that was being deleted.
    machines = (names.machine_arn, names.companion.machine_arn)

    def started(arn: str) -> bool:
        return not arn or any(starts(arn, machine) for machine in machines)

    match resource:
        case Role() | StateMachine() | LogGroup() | Alarm():
            return owned(resource.tags, pipeline)
        case Schedule():
            return started(resource.target_arn)
        case Alias():
            return resource.made
        case Rule():
            return started(resource.target_arn) or watches(resource, names.machine_arn)
        case SourceFolder() | Missed():
            return False
        case _:
            assert_never(resource)


def _in_the_way(running: tuple[str, ...]) -> str:
    return (
        f"{len(running)} executions are running, {running[0]} for one; wait for their end, or end "
        "them with orchestrate destroy --stop"
    )


def _running(states: Any, machine_arn: str) -> tuple[str, ...]:
    pages = states.get_paginator("list_executions").paginate(
        stateMachineArn=machine_arn, statusFilter="RUNNING"
    )
    try:
        return tuple(each["executionArn"] for page in pages for each in page["executions"])
    except states.exceptions.StateMachineDoesNotExist:
        return ()


def _file_systems(fsx: Any, pipeline: str, machine_arn: str) -> list[dict[str, Any]]:
    """Return the file systems that executions of the state machine have made."""
    wanted = {PIPELINE: pipeline, MACHINE: machine_arn}
    found = []
    for page in fsx.get_paginator("describe_file_systems").paginate():
        for each in page["FileSystems"]:
            tags = {tag["Key"]: tag["Value"] for tag in each.get("Tags", ())}
            if wanted.items() <= tags.items():
                found.append(each)
    return found


def _until(done: Callable[[], bool], what: str, sleep: Sleep) -> None:
    for _ in range(round(_PATIENCE_S / POLL_S)):
        if done():
            return
        sleep(POLL_S)
    raise DeployError(
        f"waited {_PATIENCE_S:.0f} s until {what}; what is not destroyed yet is by doing it again"
    )
