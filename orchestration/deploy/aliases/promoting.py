"""The end of a trial: the new version, which has got some of the runs, gets all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from orchestration.deploy.account import Account, Clients, refusal
from orchestration.deploy.aliases.model import Alias, Route
from orchestration.deploy.applying.aliases import lead
from orchestration.deploy.composing import names_of
from orchestration.deploy.monitoring.alarms import alarm_names
from orchestration.deploy.reading import starting_alias, state_machine
from orchestration.deploy.resources import Change, owned
from orchestration.errors import DeployError


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """A trial that would be ended, as it was found in the account."""

    pipeline: str
    account: Account
    session: Clients
    change: Change
    version: int
    """The number of the version that would get all runs."""
    obstacles: tuple[str, ...] = ()
    """Reasons to wait, or to go back instead."""

    def apply(self, *, force: bool = False) -> None:
        """Give the version all runs, in one call; ``force``: whatever the obstacles."""
        from botocore.exceptions import BotoCoreError, ClientError

        if self.obstacles and not force:
            raise refusal(f"version {self.version} can't get all runs yet", self.obstacles)
        alias = self.change.after
        if not isinstance(alias, Alias):
            raise DeployError(f"expected an alias to promote a version of, got {alias!r}")
        try:
            lead(self.session.client("stepfunctions"), self.change, alias)
        except (BotoCoreError, ClientError) as error:
            raise DeployError(f"AWS refused to {self.change.summary}: {error}") from error


def promotion(pipeline: str, *, session: Clients, now: datetime | None = None) -> Promotion:
    """Find the trial of a deployed pipeline's new version; changes nothing.

    One that is over already is a promotion without a difference. A
    :class:`~orchestration.errors.DeployError` says where there is no alias.
    """
    account = Account.of(session)
    states = session.client("stepfunctions")
    machine, _ = state_machine(states, names_of(pipeline, account).machine_arn)
    if machine is None or not owned(machine.tags, pipeline):
        raise DeployError(
            f"pipeline {pipeline} is not deployed to {account.id} in {account.region}"
        )
    alias = starting_alias(states, machine)
    if alias is None:
        raise DeployError(
            f"no alias starts runs of {pipeline}, so the version that was deployed last gets all "
            "of them; step_functions.alias makes one"
        )
    newest = alias.routes[-1].version or 0
    trial = len(alias.routes) > 1
    return Promotion(
        pipeline=pipeline,
        account=account,
        session=session,
        change=Change(alias, alias.moved((Route(weight=100, version=newest),))),
        version=newest,
        obstacles=tuple(_obstacles(alias, pipeline, session, now)) if trial else (),
    )


def _obstacles(
    alias: Alias, pipeline: str, session: Clients, now: datetime | None
) -> Iterator[str]:
    if alias.minutes is not None and alias.updated is not None:
        left = alias.updated + timedelta(minutes=alias.minutes) - (now or datetime.now(tz=UTC))
        if left > timedelta(0):
            minutes = -(-left // timedelta(minutes=1))
            yield (
                f"its trial takes {alias.minutes} minutes, of which {minutes} are left; wait, or "
                "pass --force"
            )
    for name in _alarming(session.client("cloudwatch"), pipeline):
        yield (
            f"alarm {name} is in the state ALARM; `orchestrate rollback {pipeline}` ends the "
            "trial with the version before, and --force passes over it"
        )


def _alarming(client: Any, pipeline: str) -> list[str]:
    """Return the names of the pipeline's alarms that tell of failed runs."""
    from botocore.exceptions import ClientError

    try:
        found = client.describe_alarms(AlarmNames=list(alarm_names(pipeline)), StateValue="ALARM")
    except ClientError as error:
        raise DeployError(f"the alarms of {pipeline} can't be read: {error}") from error
    return [each["AlarmName"] for each in found["MetricAlarms"]]
