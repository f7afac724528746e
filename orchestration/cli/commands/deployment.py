"""``orchestrate deploy`` and ``upload``, and the sessions of all commands that ask AWS."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestration.cli import values
from orchestration.cli.commands.changing import Consent, difference, show
from orchestration.cli.commands.rendering import locked
from orchestration.cli.naming import named
from orchestration.cli.output import document, note, require, say
from orchestration.errors import DeployError
from orchestration.phrases import counted

if TYPE_CHECKING:
    from orchestration.deploy import Deployment
    from orchestration.deploy.account import Regional
    from orchestration.expressions import Json
    from orchestration.pipeline import Pipeline

MODULES = {"boto3": "aws"}


def deploy(
    pipeline: str,
    parameters: Sequence[str],
    unrestricted: Sequence[str],
    *,
    sweep_every_h: int,
    role: str | None,
    region: str | None,
    profile: str | None,
    adopt: bool,
    renamed_from: str | None,
    catch_up: bool,
    consent: Consent,
    full: bool,
) -> None:
    """Deploy the pipeline to the account, or show what that would change."""
    which = named(pipeline)
    loaded = which.load()
    specs = loaded.parameter_specs()
    every = [spec.name for spec in specs]
    chosen = values.parameters(specs, parameters, filled=every)
    require(MODULES, what="deploying")
    locked(which)
    from orchestration.deploy import plan

    planned = plan(
        loaded,
        session=session_to_change(loaded, region, profile),
        parameters=chosen,
        unrestricted=unrestricted,
        role_arn=role,
        sweep_every_h=sweep_every_h,
        adopt=adopt,
        renamed_from=renamed_from,
        catch_up=catch_up,
    )
    deployment = planned.deployment
    if not consent.as_json:
        _announce(deployment, dry_run=consent.dry_run, full=full)
    if not consent.dry_run:
        planned.check()
        if deployment.changes:
            consent.ask(_question(deployment))
            planned.apply(on_change=lambda change: consent.report(f"did {change.summary}"))
    if consent.as_json:
        document(_as_json(deployment, dry_run=consent.dry_run))
    else:
        say(deployment.state_machine_arn)


def _question(deployment: Deployment) -> str:
    """Return the question; runs cost more than any other change."""
    number = len(deployment.missed)
    runs = f", and start {counted(number, 'run')}" if number else ""
    return f"Make these {counted(len(deployment.changes), 'change')}{runs}"


def _announce(deployment: Deployment, *, dry_run: bool, full: bool) -> None:
    """Show what a deployment would change."""
    if deployment.desired.own_role and dry_run:
        note(f"role {deployment.desired.role.arn} needs:")
        say(json.dumps(_needs(deployment), indent=2))
    for change in deployment.changes:
        show(change, full=full)
    if not deployment.changes:
        note("nothing to change")
    for text in deployment.warnings:
        note(f"warning: {text}")


def _as_json(deployment: Deployment, *, dry_run: bool) -> dict[str, Any]:
    return {
        "account": deployment.account.id,
        "region": deployment.account.region,
        "state_machine_arn": deployment.state_machine_arn,
        "dry_run": dry_run,
        "changes": [change.summary for change in deployment.changes],
        "differences": [difference(change) for change in deployment.changes],
        "missed": [each.isoformat() for each in deployment.missed],
        "warnings": list(deployment.warnings),
        **({"role": _needs(deployment)} if deployment.desired.own_role else {}),
    }


def _needs(deployment: Deployment) -> dict[str, Any]:
    """Return what a role of the user's own needs."""
    role = deployment.desired.role
    return {"arn": role.arn, "trust": dict(role.trust), "permissions": dict(role.policy)}


def upload(
    pipeline: str,
    parameters: Sequence[str],
    *,
    region: str | None,
    profile: str | None,
    as_json: bool,
) -> None:
    """Upload the folders of code to where the pipeline's jobs look for them."""
    which = named(pipeline)
    loaded = which.load()
    specs = loaded.parameter_specs()
    chosen = values.parameters(specs, parameters, filled=[spec.name for spec in specs])
    require(MODULES, what="uploading")
    locked(which)
    from botocore.exceptions import BotoCoreError

    from orchestration.deploy import upload as upload_sources

    try:
        session = session_to_change(loaded, region, profile)
        sent = upload_sources(loaded, chosen, session.client("s3"))
    except BotoCoreError as error:
        raise DeployError(f"AWS can't be reached: {error}") from error
    if as_json:
        document({"uploaded": [{"uri": each.uri, "size": each.size} for each in sent]})
        return
    for each in sent:
        say(each.uri)
    note(f"{len(sent)} objects uploaded" if sent else "everything is uploaded already")


def session_to_run(
    pipeline: Pipeline, values: Mapping[str, Json], region: str | None, profile: str | None
) -> Any:
    """Return a session for a run with these values, which may name a role of another account."""
    from orchestration.deploy.account import Account
    from orchestration.deploy.executions.passing import passing

    session = session_to_change(pipeline, region, profile)
    passing(pipeline, values, Account.of(session))
    return session


def session_to_change(pipeline: Regional, region: str | None, profile: str | None) -> Any:
    """Return a session for a command that changes an account, which is shown before.

    Raises :class:`~orchestration.errors.DeployError` where the session has another region than the
    pipeline, or another account than the role that it names. Every such command gets its session
    here.
    """
    from orchestration.deploy.account import Account, in_its_place, in_its_region

    session = session_of(region or pipeline.region, profile)
    in_its_region(pipeline, session.region_name)
    account = Account.of(session)
    note(f"account {account.id}, region {account.region}")
    in_its_place(pipeline, account)
    return session


def session_of(region: str | None, profile: str | None) -> Any:
    """Return a session of boto3; raises :class:`DeployError` where it has no region."""
    from botocore.exceptions import BotoCoreError

    try:
        session = new_session(region, profile)
    except BotoCoreError as error:
        raise DeployError(str(error)) from error
    if session.region_name is None:
        raise DeployError(
            "the region is missing; give the pipeline one, use --region, or set AWS_REGION"
        )
    return session


def new_session(region: str | None, profile: str | None) -> Any:
    """Return a session of boto3 that reads credentials anew, and botocore's models only once."""
    import boto3
    import botocore.session

    core = botocore.session.get_session()
    core.lazy_register_component(
        "data_loader", lambda: _models(core.get_config_variable("data_path"))
    )
    return boto3.Session(botocore_session=core, region_name=region, profile_name=profile)


@functools.cache
def _models(data_path: str | None) -> Any:
    """Return what reads botocore's models: megabytes, which every session would parse again."""
    from botocore.loaders import create_loader

    return create_loader(data_path)
