"""The desired state of an account for a pipeline, computed without asking AWS."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from orchestration.backends import stepfunctions
from orchestration.backends.origins import lacking
from orchestration.deploy import (
    batch_copies,
    companion,
    other_accounts,
    permissions,
    sources,
    transfers,
)
from orchestration.deploy.account import (
    OWNER,
    Account,
    in_its_place,
    passing_within,
    refusal,
)
from orchestration.deploy.aliases.model import ALIAS, Alias, Trial
from orchestration.deploy.events import notices, schedules, triggers
from orchestration.deploy.monitoring import composing as monitoring
from orchestration.deploy.monitoring.alarms import alarm_names
from orchestration.deploy.monitoring.logs import log_group_name
from orchestration.deploy.parameters import read, required, with_defaults
from orchestration.deploy.resources import Desired, Names, StateMachine
from orchestration.deploy.starting import Maker
from orchestration.errors import near
from orchestration.expressions import Json, Parameter, walk

if TYPE_CHECKING:
    from orchestration.graph import Workflow
    from orchestration.pipeline import Pipeline


def desired(
    pipeline: Pipeline,
    account: Account,
    *,
    parameters: Mapping[str, Json] | None = None,
    unrestricted: Collection[str] = (),
    role_name: str | None = None,
    sweep_every_h: int = 1,
) -> Desired:
    """Compute the resources that a pipeline needs in an account.

    The role's permissions are as narrow as the values of ``parameters`` allow: IAM refuses a run
    with other values, unless the parameter is one of ``unrestricted``. A
    :class:`~orchestration.errors.DeployError` names every missing value.
    """
    in_its_place(pipeline, account)
    workflow = pipeline.carried()
    chosen = read(workflow.parameters, parameters or {})
    _check(pipeline, workflow, account, chosen, unrestricted)
    definition = stepfunctions.render(workflow)
    names = names_of(pipeline.name, account, role_name=role_name, alias=workflow.alias or "")
    tags = {**pipeline.tags, OWNER: pipeline.name}
    maker = Maker(account=account, tags=tags)
    runs = runs_of(workflow, chosen, unrestricted)
    waited, more = permissions.synchronous(definition), monitoring.statements(pipeline)
    policy = permissions.policy(workflow, account, runs, synchronous=waited, more=more)
    passing_within(pipeline.name, policy, account)
    group = monitoring.log_group(pipeline, account, tags)
    role = maker.machine(names.role, policy, names.machine_arn, qualified=bool(names.alias))
    machine = StateMachine(
        name=pipeline.name,
        arn=names.machine_arn,
        definition=definition,
        role_arn=role.arn,
        tags=tags | ({ALIAS: names.alias} if names.alias else {}),
    )
    starter, scheduled = schedules.desired(workflow, names, chosen, maker)
    triggered = triggers.desired(workflow, names, chosen, maker)
    return Desired(
        pipeline=pipeline.name,
        sources=sources.folders(pipeline, chosen),
        role=role,
        machine=monitoring.monitored(machine, pipeline, group),
        log_group=group,
        alarms=monitoring.alarms(pipeline, account, tags),
        schedule_role=starter,
        schedule=scheduled,
        companion=companion.desired(workflow, account, tags, sweep_every_h),
        notices=notices.desired(workflow, account),
        trigger_role=triggered.role,
        trigger=triggered.rule,
        transfer_role=transfers.desired(workflow, maker, runs),
        batch_role=batch_copies.desired(workflow, maker, runs),
        foreign=other_accounts.sources(workflow, account, runs),
        assumed=permissions.assumed(workflow, account, runs),
        alias=_alias(pipeline, machine.arn),
        warnings=tuple(lacking(definition, workflow)),
    )


def _alias(pipeline: Pipeline, machine_arn: str) -> Alias | None:
    options = pipeline.step_functions
    if options is None or options.alias is None:
        return None
    asked = options.alias.canary or options.alias.linear
    if asked is None:
        return Alias.wanted(options.alias.name, machine_arn, None)
    is_linear = options.alias.linear is not None
    trial = Trial(percent=asked.percent, minutes=asked.minutes, is_linear=is_linear)
    return Alias.wanted(options.alias.name, machine_arn, trial)


def names_of(
    pipeline: str, account: Account, *, role_name: str | None = None, alias: str = ""
) -> Names:
    """Name the resources of a pipeline with this name; names of roles include the region."""
    return Names(
        machine_arn=account.arn("states", f"stateMachine:{pipeline}"),
        role=role_name or f"{pipeline}-{account.region}-states",
        schedule_role=f"{pipeline}-{account.region}-schedule",
        schedule=pipeline,
        companion=companion.names(pipeline, account),
        notices=notices.names(pipeline),
        trigger=triggers.name(pipeline),
        trigger_role=triggers.role_name(pipeline, account),
        transfer_role=transfers.name(pipeline, account),
        batch_role=batch_copies.name(pipeline, account),
        log_group=log_group_name(pipeline),
        alarms=alarm_names(pipeline),
        alias=alias,
    )


def _check(
    pipeline: Pipeline,
    workflow: Workflow,
    account: Account,
    chosen: Mapping[str, Json],
    unrestricted: Collection[str],
) -> None:
    specs = workflow.parameters
    known = {spec.name for spec in specs}
    told = triggers.run_values(workflow)
    values = with_defaults(specs, chosen).keys()
    timed = _timed(workflow).keys()
    why: dict[str, list[str]] = {}
    for name in (
        permissions.needed(workflow, account) - values - {*unrestricted, *timed} - told.keys()
    ):
        why.setdefault(name, []).append("the role's permissions depend on it")
    if any(source.uri is None for stage in pipeline.every_stage for _, source in stage.sources()):
        for node in walk(pipeline.workspace):
            if isinstance(node, Parameter) and node.name not in values:
                why.setdefault(node.name, []).append("code is uploaded to the workspace")
    if workflow.schedule is not None:
        for name in set(required(specs)) - values - workflow.schedule.told:
            why.setdefault(name, []).append("scheduled runs need it")
    if workflow.trigger is not None:
        for name in set(required(specs)) - values - told.keys():
            why.setdefault(name, []).append("triggered runs need it")
    problems = [
        f"parameter {name!r} has no value: {' and '.join(reasons)}; give it ({name}=…)"
        for name, reasons in sorted(why.items())
    ]
    problems += [
        f"parameter {name!r} is the time of a scheduled run, which the schedule gives; leave it out"
        for name in timed
        if name in chosen and workflow.trigger is None
    ]
    problems += [
        f"unknown parameter {name!r} in unrestricted{near(name, known)}"
        for name in unrestricted
        if name not in known
    ]
    if problems:
        raise refusal(f"pipeline {pipeline.name} can't be deployed", problems)


def runs_of(
    workflow: Workflow, chosen: Mapping[str, Json], unrestricted: Collection[str]
) -> list[Mapping[str, Json]]:
    """List the parameters of each kind of run: started by a person, a schedule or an event."""
    anything: dict[str, Json] = {**dict.fromkeys(unrestricted), **_timed(workflow)}
    told = triggers.run_values(workflow)
    runs = [{**told, **with_defaults(workflow.parameters, chosen), **anything}]
    if workflow.schedule is not None:
        scheduled = {**chosen, **workflow.schedule.parameters}
        runs.append({**told, **with_defaults(workflow.parameters, scheduled), **anything})
    if told:
        runs.append({**with_defaults(workflow.parameters, chosen), **told, **anything})
    return list(runs)


def _timed(workflow: Workflow) -> dict[str, None]:
    """Return the parameter that has another value in each scheduled run, if there is one."""
    name = None if workflow.schedule is None else workflow.schedule.time_parameter
    return {} if name is None else {name: None}
