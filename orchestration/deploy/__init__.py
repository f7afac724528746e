"""Deployment of pipelines to AWS Step Functions: computed, compared, shown, then applied.

A deployment is the code in S3, a role with the permissions of the pipeline's own steps, the state
machine and its log group, its schedule, the rule that starts it after events, the companion that
cleans up after executions ended from outside, and the rules that tell how executions end.
:func:`desired` computes the desired state, :func:`current` reads the current one,
:func:`difference` lists the changes and :func:`apply` makes them; a second deployment of the same
pipeline changes nothing. A resource with a pipeline's name but without its tag is refused, never
overwritten.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from orchestration.deploy import other_accounts, own_role
from orchestration.deploy.account import Account, Clients, refusal
from orchestration.deploy.aliases.promoting import Promotion, promotion
from orchestration.deploy.applying import Sleep, apply
from orchestration.deploy.comparing import difference
from orchestration.deploy.composing import desired, names_of
from orchestration.deploy.destroying import Destruction, destruction
from orchestration.deploy.differences import readable, renames
from orchestration.deploy.events import notices, schedules, triggers
from orchestration.deploy.executions import Rerun, backfilling, rerun
from orchestration.deploy.reading import current
from orchestration.deploy.resources import (
    Change,
    Companion,
    Current,
    Desired,
    Names,
    Resource,
    Role,
    Rule,
    Schedule,
    StateMachine,
    Target,
)
from orchestration.deploy.rolling_back import Rollback, rollback
from orchestration.deploy.sources import SourceFolder, Uploaded, upload
from orchestration.errors import DeployError
from orchestration.expressions import Json

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

__all__ = [
    "Account",
    "Change",
    "Clients",
    "Companion",
    "Current",
    "Deployment",
    "Desired",
    "Destruction",
    "Names",
    "Plan",
    "Promotion",
    "Rerun",
    "Resource",
    "Role",
    "Rollback",
    "Rule",
    "Schedule",
    "SourceFolder",
    "StateMachine",
    "Target",
    "Uploaded",
    "apply",
    "current",
    "desired",
    "destruction",
    "difference",
    "names_of",
    "plan",
    "promotion",
    "readable",
    "rerun",
    "rollback",
    "step_functions",
    "upload",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The result of a deployment: the account before, the desired state, the changes."""

    account: Account
    desired: Desired
    changes: tuple[Change, ...]
    """The changes made, or in a dry run those to make. Empty: everything is up to date."""
    warnings: tuple[str, ...] = ()
    """Obstacles, certain or possible: to the role, to messages about runs, to events that start
    them, and to reading what is in other accounts; and what the definition does not hold."""

    @property
    def state_machine_arn(self) -> str:
        """The ARN of the state machine, or of its alias, to start executions of."""
        return self.desired.start_arn

    @property
    def missed(self) -> tuple[datetime, ...]:
        """The times before the deployment whose runs it starts."""
        return () if self.desired.missed is None else self.desired.missed.times


def step_functions(
    pipeline: Pipeline,
    *,
    session: Clients | None = None,
    parameters: Mapping[str, Json] | None = None,
    unrestricted: Collection[str] = (),
    role_name: str | None = None,
    role_arn: str | None = None,
    sweep_every_h: int = 1,
    adopt: bool = False,
    renamed_from: str | None = None,
    catch_up: bool = True,
    dry_run: bool = False,
    sleep: Sleep = time.sleep,
) -> Deployment:
    """Deploy a pipeline to Step Functions, or list with ``dry_run`` what that would change.

    ``session`` is a ``boto3.Session`` in the pipeline's region, by default one from the
    environment. ``parameters`` are the
    values that runs will be started with: the role may use only those buckets and pass only that
    role, and scheduled runs get these values; ``unrestricted`` names parameters that may have any
    value. ``role_name`` is the execution role's name, by default derived from the pipeline and the
    region. With ``role_arn``, a role of your own, none is made: state machines, schedules and rules
    use that one, which must exist, trust them, and have the permissions in ``desired.role``. The
    pipeline's ``step_functions.role`` is such a role, too. Every ``sweep_every_h`` hours the
    companion looks for what ended executions have left. ``adopt`` takes over resources of these
    names that no pipeline owns. ``renamed_from`` is the name that the pipeline was deployed with
    before: what that has made is destroyed once the rest is made, as :func:`destruction` does.
    A new schedule with ``catchup`` gets the runs that it has missed, unless ``catch_up`` is false.
    """
    planned = plan(
        pipeline,
        session=session,
        parameters=parameters,
        unrestricted=unrestricted,
        role_name=role_name,
        role_arn=role_arn,
        sweep_every_h=sweep_every_h,
        adopt=adopt,
        renamed_from=renamed_from,
        catch_up=catch_up,
    )
    return planned.deployment if dry_run else planned.apply(sleep=sleep)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A deployment that has been compared with the account and not been made yet."""

    deployment: Deployment
    session: Clients
    former: Destruction | None = None
    """The deployment under an earlier name, which goes once all else is made."""
    obstacles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Problems for which AWS would run or tell nothing, by what that would mean."""

    def apply(
        self, *, sleep: Sleep = time.sleep, on_change: Callable[[Change], None] = lambda _: None
    ) -> Deployment:
        """Make the changes."""
        self.check()
        former = () if self.former is None else self.former.changes
        changes = self.deployment.changes
        made = changes[: len(changes) - len(former)]
        apply(made, self.session, sleep=sleep, on_change=on_change)
        if (missed := self.deployment.desired.missed) is not None:
            # Times that were over while the schedule was made, which may start their runs, too.
            apply([Change(None, replace(missed, times=()))], self.session)
        if self.former is not None:
            self.former.apply(sleep=sleep, on_change=on_change)
        return self.deployment

    def after(self, former: Destruction) -> Plan:
        """Return the plan that destroys a deployment under an earlier name, too."""
        problems = former.obstacles(stop=False, file_systems=False)
        name = former.pipeline
        unknown = () if former.changes or former.file_systems else (renames.nothing(name),)
        headline = f"pipeline {name} can't be destroyed yet; see orchestrate destroy"
        deployment = replace(
            self.deployment,
            changes=(*self.deployment.changes, *former.changes),
            warnings=(*self.deployment.warnings, *problems, *unknown),
        )
        obstacles = {**self.obstacles, headline: problems}
        return replace(self, deployment=deployment, former=former, obstacles=obstacles)

    def check(self) -> None:
        """Raise a :class:`~orchestration.errors.DeployError` if there are obstacles."""
        for headline, problems in self.obstacles.items():
            if problems:
                raise refusal(headline, problems)


def plan(
    pipeline: Pipeline,
    *,
    session: Clients | None = None,
    parameters: Mapping[str, Json] | None = None,
    unrestricted: Collection[str] = (),
    role_name: str | None = None,
    role_arn: str | None = None,
    sweep_every_h: int = 1,
    adopt: bool = False,
    renamed_from: str | None = None,
    catch_up: bool = True,
) -> Plan:
    """Compare a pipeline with the account, as :func:`step_functions` does, and change nothing."""
    if session is None:
        session = _own_session(pipeline.region)
    account = Account.of(session)
    wanted = desired(
        pipeline,
        account,
        parameters=parameters,
        unrestricted=unrestricted,
        role_name=role_name,
        sweep_every_h=sweep_every_h,
    )
    ready = own_role.Readiness()
    names = replace(
        names_of(pipeline.name, account, role_name=role_name),
        sources=wanted.sources,
        # Reading it needs a permission that a deployment without one may lack.
        log_group="" if wanted.log_group is None else wanted.log_group.name,
        alias="" if wanted.alias is None else wanted.alias.name,
    )
    now = current(session, names)
    own = own_role.named(pipeline, role_arn)
    if own is not None:
        wanted = own_role.under(wanted, own, account)
        ready = own_role.readiness(wanted, now, session)
    moment = datetime.now(tz=UTC)
    scheduled = schedules.settled(pipeline.lower(), wanted.schedule, schedules.known(now), moment)
    former = None if renamed_from is None else _former(wanted, renamed_from, session)
    wanted = replace(wanted, schedule=scheduled)
    if catch_up and not (former is not None and former.starts_by_schedule):
        missed = backfilling.missed(pipeline, wanted, now, session, moment)
        wanted = replace(wanted, missed=missed, schedule=backfilling.marked(scheduled, missed))
    changes = difference(wanted, now, adopt=adopt)
    known = now.machine is not None or (former is not None and former.changes != ())
    checks = _checks(pipeline, wanted, session, account, ready)
    warnings = (
        *(text for each in checks.values() for text in (*each.problems, *each.warnings)),
        *other_accounts.warnings(wanted),
        *(() if known else renames.warnings(wanted.machine.definition, session)),
        *wanted.warnings,
    )
    planned = Plan(
        deployment=Deployment(account=account, desired=wanted, changes=changes, warnings=warnings),
        session=session,
        obstacles={headline: each.problems for headline, each in checks.items()},
    )
    return planned if former is None else planned.after(former)


def _former(wanted: Desired, name: str, session: Clients) -> Destruction:
    """Find what was deployed under an earlier name; that of another pipeline is refused."""
    if name == wanted.machine.name:
        raise DeployError(renames.same(name))
    found = destruction(name, session=session)
    if found.machine is not None:
        both = (each.definition for each in (wanted.machine, found.machine))
        renames.refuse_another(name, *map(renames.carried, both))
    return found


def _checks(
    pipeline: Pipeline,
    wanted: Desired,
    session: Clients,
    account: Account,
    ready: own_role.Readiness,
) -> dict[str, own_role.Readiness | notices.Delivery]:
    """Read what may be in the way of a deployment, by what that would mean."""
    many = None if wanted.missed is None else wanted.missed.problem(pipeline.lower().overlapping)
    missed = own_role.Readiness(problems=() if many is None else (many,))
    return {
        f"pipeline {pipeline.name} can't catch up": missed,
        f"pipeline {pipeline.name} can't run under this role": ready,
        f"nobody would hear how runs of {pipeline.name} end": notices.delivery(
            wanted.notices, session, account, wanted.alarms
        ),
        f"nothing would start runs of {pipeline.name}": triggers.delivery(
            pipeline.trigger_spec(), session, account
        ),
    }


def _own_session(region: str | None) -> Clients:
    try:
        import boto3
    except ModuleNotFoundError as error:
        raise DeployError(
            "deploying needs boto3; install it with pip install 'sagemaker-orchestration[aws]'"
        ) from error
    session: Clients = boto3.Session(region_name=region)
    return session
