"""The identities of a pipeline, in the order of :data:`WHO`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestration.backends import stepfunctions
from orchestration.deploy import companion, own_role, permissions
from orchestration.deploy.account import Account
from orchestration.deploy.composing import desired, names_of, runs_of
from orchestration.deploy.identities.airflow import airflow
from orchestration.deploy.identities.deployer import deployer
from orchestration.deploy.identities.doctor import doctor
from orchestration.deploy.identities.identity import Identity, Who, identity
from orchestration.deploy.identities.jobs import identities as jobs
from orchestration.deploy.monitoring import composing as monitoring
from orchestration.deploy.parameters import read
from orchestration.deploy.permissions import Statement, derived, registries
from orchestration.deploy.resources import Desired, Role
from orchestration.expressions import Json
from orchestration.graph import Call, Workflow, all_steps, operations

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

_EVERY_RUN = "every run"


def identities(
    pipeline: Pipeline,
    account: Account,
    *,
    parameters: Mapping[str, Json] | None = None,
    unrestricted: Collection[str] = (),
    role_arn: str | None = None,
) -> tuple[Identity, ...]:
    """Compute the least policies of everyone who acts for a pipeline in an account.

    The arguments are those of :func:`orchestration.deploy.desired`, and so are the errors.
    """
    wanted = desired(pipeline, account, parameters=parameters, unrestricted=unrestricted)
    workflow = pipeline.lower()
    runs = runs_of(workflow, read(workflow.parameters, parameters or {}), unrestricted)
    names = replace(names_of(pipeline.name, account), sources=wanted.sources)
    own = own_role.named(pipeline, role_arn)
    final = wanted if own is None else own_role.under(wanted, own, account)
    return (
        _machine(workflow, account, runs, wanted, monitoring.statements(pipeline)),
        *jobs(workflow, account, runs),
        *_starters(wanted),
        *_companion(workflow, account, wanted),
        *_copying(workflow, wanted),
        deployer(final, names, workflow, account),
        doctor(wanted, names, workflow, account, runs, own_role=own),
        # Whichever role the connection has, it is one of this account.
        _with_owners(
            airflow(workflow, account, runs),
            f"arn:{account.partition}:iam::{account.id}:root",
            account,
            wanted,
        ),
    )


def _machine(
    workflow: Workflow,
    account: Account,
    runs: permissions.Runs,
    wanted: Desired,
    more: Sequence[Statement],
) -> Identity:
    waited = permissions.synchronous(stepfunctions.render(workflow))
    needed = permissions.statements(workflow, account, runs, synchronous=waited)
    role = wanted.role
    made = identity("machine", role.arn, [*needed, *more], trust=role.trust)
    return _with_owners(made, role.arn, account, wanted)


def _with_owners(made: Identity, principal: str, account: Account, wanted: Desired) -> Identity:
    """Return an identity with what the owners of model groups and of roles have to allow it."""
    groups = registries.told(made.policy, principal, account.id)
    roles = (role.told(principal) for role in wanted.assumed)
    return replace(made, notes=(*made.notes, *groups, *roles))


def _starters(wanted: Desired) -> Iterator[Identity]:
    for role, reason in ((wanted.schedule_role, "schedule"), (wanted.trigger_role, "trigger")):
        if role is not None:
            yield _of(role, "scheduler", reason)


def _companion(workflow: Workflow, account: Account, wanted: Desired) -> Iterator[Identity]:
    made = wanted.companion
    if made.role is not None:
        makers = _makers(workflow)
        needed = [
            each.by(*_reasons(each, makers)) for each in companion.statements(workflow, account)
        ]
        yield identity("companion", made.role.arn, needed, trust=made.role.trust)
    if made.starter is not None:
        yield _of(made.starter, "companion", _EVERY_RUN)


def _copying(workflow: Workflow, wanted: Desired) -> Iterator[Identity]:
    makers = _makers(workflow)
    for role, service in ((wanted.transfer_role, "datasync"), (wanted.batch_role, "s3")):
        if role is not None:
            yield _of(role, "copying", *{step for prefix, _, step in makers if prefix == service})


def _makers(workflow: Workflow) -> list[tuple[str, str, str]]:
    """List what steps create: the prefix of their service's actions, the thing, and the step."""
    return [
        (row.prefix, operation.name.removeprefix("Create"), step.name)
        for step in all_steps(workflow.graph)
        if isinstance(step, Call)
        for operation in operations(step)
        if operation.name.startswith("Create")
        and (row := derived.row(operation.service, operation.name)) is not None
    ]


def _reasons(statement: Statement, makers: Sequence[tuple[str, str, str]]) -> set[str]:
    """Return the steps that create what a statement of the companion's finds or deletes."""
    prefixes = {action.partition(":")[0] for action in statement.actions}
    of_service = [each for each in makers if each[0] in prefixes]
    of_kind = [each for each in of_service if any(each[1] in a for a in statement.actions)]
    return {step for *_, step in of_kind or of_service} or {_EVERY_RUN}


def _of(role: Role, who: Who, *reasons: str) -> Identity:
    needed = [_read(each).by(*reasons) for each in role.policy["Statement"]]
    return identity(who, role.arn, needed, trust=role.trust)


def _read(document: Mapping[str, Any]) -> Statement:
    """Return a statement that is in IAM's form."""
    return Statement(
        document["Sid"].rstrip("0123456789"),
        frozenset(document["Action"]),
        frozenset(document["Resource"]),
        tuple(
            (operator, key, frozenset([value] if isinstance(value, str) else value))
            for operator, pairs in document.get("Condition", {}).items()
            for key, value in pairs.items()
        ),
    )
