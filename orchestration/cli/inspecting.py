"""The commands that show what an account must have, and their options."""

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
