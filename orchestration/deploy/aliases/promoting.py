"""The end of a trial: the new version, which has got some of the runs, gets more, or all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from orchestration.phrases import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """A trial that would be ended, as it was found in the account."""

    pipeline: str
    account: Account
    session: Clients
    change: Change
    version: int
    """The number of the version that would get more runs."""
    weight: int = 100
    """The runs of 100 that it would get."""
    obstacles: tuple[str, ...] = ()
    """Reasons to wait, or to go back instead."""

    def apply(self, *, force: bool = False) -> None:
        """Give the version all runs, in one call; ``force``: whatever the obstacles."""
        from botocore.exceptions import BotoCoreError, ClientError

        if self.obstacles and not force:
            runs = "all runs" if self.weight == 100 else f"{self.weight} of 100 runs"
            raise refusal(f"version {self.version} can't get {runs} yet", self.obstacles)
        alias = self.change.after
        if not isinstance(alias, Alias):
            raise DeployError(f"expected an alias to promote a version of, got {alias!r}")
        try:
            lead(self.session.client("stepfunctions"), self.change, alias)
        except (BotoCoreError, ClientError) as error:
            raise DeployError(f"AWS refused to {self.change.summary}: {error}") from error


def promotion(
    pipeline: str,
    *,
    session: Clients,
    percent: int | None = None,
    now: datetime | None = None,
) -> Promotion:
    """Find the trial of a deployed pipeline's new version; changes nothing.

    ``percent`` are the runs of 100 that it would get: by default one step more of a linear trial,
    and all of them after any other. One that is over already is a promotion without a difference. A
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
    routes = _next(alias, percent)
    trial = len(alias.routes) > 1
    return Promotion(
        pipeline=pipeline,
        account=account,
        session=session,
        change=Change(alias, alias.moved(routes)),
        version=routes[-1].version or 0,
        weight=routes[-1].weight,
        obstacles=tuple(_obstacles(alias, pipeline, session, now)) if trial else (),
    )


def _next(alias: Alias, percent: int | None) -> tuple[Route, ...]:
    """Return what an alias would lead to: to the new version with more of the runs, or all."""
    newest = alias.routes[-1]
    if len(alias.routes) == 1:
        return alias.routes
    step = alias.trial.percent if alias.trial is not None and alias.trial.is_linear else 100
    weight = min(newest.weight + step, 100) if percent is None else percent
    if not newest.weight <= weight <= 100:
        raise DeployError(
            f"version {newest.version} gets {newest.weight} of 100 runs already; {percent} would "
            "be fewer; `orchestrate rollback` ends its trial with the version before"
        )
    if weight == 100:
        return (replace(newest, weight=100),)
    return (replace(alias.routes[0], weight=100 - weight), replace(newest, weight=weight))


def _obstacles(
    alias: Alias, pipeline: str, session: Clients, now: datetime | None
) -> Iterator[str]:
    trial = alias.trial
    if trial is not None and alias.updated is not None:
        left = alias.updated + timedelta(minutes=trial.minutes) - (now or datetime.now(tz=UTC))
        if left > timedelta(0):
            minutes = -(-left // timedelta(minutes=1))
            part = "this step of its trial" if trial.is_linear else "its trial"
            yield (
                f"{part} takes {counted(trial.minutes, 'minute')}, of which {minutes} "
                f"{'is' if minutes == 1 else 'are'} left; wait, or pass --force"
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
        found = client.describe_alarms(AlarmNames=list(alarm_names(pipeline)))
    except ClientError as error:
        raise DeployError(f"the alarms of {pipeline} can't be read: {error}") from error
    # moto 5.2 ignores `StateValue` beside the names.
    return [a["AlarmName"] for a in found["MetricAlarms"] if a["StateValue"] == "ALARM"]
