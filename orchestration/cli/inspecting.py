"""The commands that show what an account must have and what it lacks, and their options."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestration.cli.options import Json, Parameters, Pipeline, Profile, Region


def iam(
    pipeline: Pipeline,
    who: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            metavar="WHO",
            help="machine, jobs, scheduler, companion, copying, deployer or airflow; repeatable.",
        ),
    ] = None,
    parameters: Parameters = None,
    unrestricted: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Parameter that may have any value; repeatable."),
    ] = None,
    account: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Account; AWS is not asked then. Default: the profile's."),
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(metavar="ARN", help="Role of your own that `deploy --role` would use."),
    ] = None,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Show the least policies it needs.

    Of everyone who acts for it: the state machine, the jobs, the scheduler, the companion, the
    roles that copy data, whoever deploys, and Airflow; each statement with the steps that need it,
    and each role with who may assume it, for what.

    Example: `orchestrate iam digits.yaml --account 123456789012 --for jobs -p bucket=my-bucket`
    """
    from orchestration.cli.commands import permissions

    permissions.iam(
        pipeline,
        who or (),
        parameters or (),
        unrestricted or (),
        account=account,
        role=role,
        region=region,
        profile=profile,
        as_json=as_json,
    )


def doctor(
    pipeline: Pipeline,
    parameters: Parameters = None,
    account: Annotated[
        bool, typer.Option("--account", help="Look at your account, too; reads only.")
    ] = False,
    role: Annotated[
        str | None,
        typer.Option(metavar="ARN", help="Role of your own that `deploy --role` would use."),
    ] = None,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Find what would fail a run, before it is paid for.

    Without an account: everything that `validate` knows, with the values of `-p`. With `--account`
    also quotas, networks, roles, buckets, keys, images, names, endpoints and schedules. Nothing is
    changed. Exit status 1 where a run would fail; what may fail, or could not be looked at, is told
    only.

    Example: `orchestrate doctor digits.yaml --account --profile research -p bucket=my-bucket`
    """
    from orchestration.cli.commands.reading import doctoring

    doctoring.doctor(
        pipeline,
        parameters or (),
        account=account,
        role=role,
        region=region,
        profile=profile,
        as_json=as_json,
    )
