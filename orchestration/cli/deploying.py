"""The commands that change an account, or say what would; their code is imported when they run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from orchestration.cli.commands.deployed.exporting import Format
from orchestration.cli.commands.rendering import Backend
from orchestration.cli.executing import Deployed
from orchestration.cli.options import (
    Agreed,
    DryRun,
    Full,
    Json,
    Parameters,
    Pipeline,
    Profile,
    Region,
)

To = Annotated[
    str | None,
    typer.Option(metavar="FOLDER|S3URI", help="Folder of DAGs; only with airflow."),
]
Adopt = Annotated[
    bool, typer.Option("--adopt", help="Take over what has these names and no owner.")
]
Hours = Annotated[
    int, typer.Option(min=1, metavar="HOURS", help="How often leftovers are looked for.")
]
Dag = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="DAG file; default: NAME.py beside NAME.yaml, or a new one."),
]
Policy = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File for the policy of the tasks' role; with airflow."),
]
Former = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Its earlier name: what that made is deleted in the end."),
]
NoCatchUp = Annotated[
    bool,
    typer.Option("--no-catch-up", help="Start no run that a new schedule with catchup missed."),
]
Role = Annotated[
    str | None,
    typer.Option(metavar="ARN", help="Role of your own; none is made. --dry-run: its needs."),
]
Unrestricted = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Parameter that may have any value; repeatable."),
]
Where = Annotated[Backend, typer.Argument(metavar="step-functions|airflow", show_default=False)]


def deploy(
    target: Where,
    pipeline: Pipeline,
    parameters: Parameters = None,
    unrestricted: Unrestricted = None,
    dry_run: DryRun = False,
    yes: Agreed = False,
    adopt: Adopt = False,
    renamed_from: Former = None,
    no_catch_up: NoCatchUp = False,
    full: Full = False,
    sweep_every_h: Hours = 1,
    role: Role = None,
    to: To = None,
    dag: Dag = None,
    policy: Policy = None,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Deploy it to Step Functions or Airflow.

    Uploads the code. To Step Functions: the state machine, its schedule, its role with the
    permissions that the steps need, the companion that cleans up after executions, and the runs
    that a new schedule with `catchup` has missed. To Airflow:
    the DAG file, the YAML and its lock file, into a folder of DAGs (`--to`). Shows account, region
    and what differs, and asks first; without a terminal it needs `--yes`.

    Example: `orchestrate deploy step-functions digits.yaml -p bucket=my-bucket --dry-run`
    """
    from orchestration.cli.commands import deployment
    from orchestration.cli.commands.changing import Consent
    from orchestration.cli.commands.deployed import placing

    consent = Consent(yes=yes, dry_run=dry_run, as_json=as_json)
    if target is Backend.AIRFLOW:
        _only_for(
            Backend.STEP_FUNCTIONS,
            {"--role": role, "--sweep-every-h": sweep_every_h != 1, "--no-catch-up": no_catch_up},
        )
        options = placing.Options(
            to=_folder(to),
            dag=dag,
            policy=policy,
            unrestricted=unrestricted or (),
            adopt=adopt,
            renamed_from=renamed_from,
            full=full,
            region=region,
            profile=profile,
        )
        placing.deploy(pipeline, parameters or (), options, consent)
        return
    _only_for(Backend.AIRFLOW, {"--to": to, "--dag": dag, "--policy": policy})
    deployment.deploy(
        pipeline, parameters or (), unrestricted or (),
        sweep_every_h=sweep_every_h, role=role, region=region, profile=profile,
        adopt=adopt, renamed_from=renamed_from, catch_up=not no_catch_up, consent=consent,
        full=full,
    )  # fmt: skip


def destroy(
    target: Where,
    pipeline: Deployed,
    to: To = None,
    stop: Annotated[bool, typer.Option("--stop", help="End executions that are running.")] = False,
    file_systems: Annotated[
        bool, typer.Option("--file-systems", help="Delete file systems that outlive their runs.")
    ] = False,
    logs: Annotated[
        bool, typer.Option("--logs", help="Delete the log group of executions, with its records.")
    ] = False,
    dry_run: DryRun = False,
    yes: Agreed = False,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Delete what deploying it has made.

    The schedule, the rules, the state machines and the roles; on Airflow, the files in the folder
    of DAGs (`--to`). Data, code, models, endpoints and logs stay. On Step Functions the companion
    first cleans up after runs that have ended. A renamed pipeline is destroyed under its old name.
    Shows account, region and what goes, and asks first; without a terminal it needs `--yes`.

    Example: `orchestrate destroy step-functions digits --dry-run`
    """
    from orchestration.cli.commands.changing import Consent
    from orchestration.cli.commands.deployed import destroying, placing

    consent = Consent(yes=yes, dry_run=dry_run, as_json=as_json)
    if target is Backend.AIRFLOW:
        options = placing.Options(to=_folder(to), region=region, profile=profile)
        _only_for(
            Backend.STEP_FUNCTIONS,
            {"--stop": stop, "--file-systems": file_systems, "--logs": logs},
        )
        placing.destroy(pipeline, options, consent)
        return
    _only_for(Backend.AIRFLOW, {"--to": to})
    destroying.destroy(
        pipeline,
        stop=stop,
        file_systems=file_systems,
        logs=logs,
        region=region,
        profile=profile,
        consent=consent,
    )


def rollback(
    pipeline: Deployed,
    version: Annotated[
        int | None,
        typer.Option("--to", min=1, metavar="VERSION", help="Default: the one before."),
    ] = None,
    dry_run: DryRun = False,
    yes: Agreed = False,
    full: Full = False,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Take a deployed state machine back to the version before.

    Its definition, role and logging become those of that version, in one call; where an alias
    starts runs, it leads to that version instead. Executions that are running go on as they began.
    Schedule, triggers and the permissions of roles stay as deployed. Shows account, region and
    what differs, and asks first; without a terminal it needs `--yes`.

    Example: `orchestrate rollback digits --dry-run`
    """
    from orchestration.cli.commands.changing import Consent
    from orchestration.cli.commands.deployed.rolling_back import roll_back

    roll_back(
        pipeline,
        version=version,
        region=region,
        profile=profile,
        full=full,
        consent=Consent(yes=yes, dry_run=dry_run, as_json=as_json),
    )


def promote(
    pipeline: Deployed,
    percent: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="The runs of 100 that it gets from now on."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Before its time is over, or with an alarm.")
    ] = False,
    dry_run: DryRun = False,
    yes: Agreed = False,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Give the version that was deployed last all runs, after a trial with some of them.

    With `step_functions.alias.canary`, a new version gets a part of the runs at first; with
    `linear`, each `promote` gives it one step more, until it has all. It is refused before the
    minutes of the trial are over, and while an alarm of the pipeline tells of failed runs;
    `orchestrate rollback` ends the trial with the version before instead. Shows
    account, region and what differs, and asks first; without a terminal it needs `--yes`.

    Example: `orchestrate promote digits --dry-run`
    """
    from orchestration.cli.commands.changing import Consent
    from orchestration.cli.commands.deployed import promoting

    promoting.promote(
        pipeline,
        percent=percent,
        force=force,
        region=region,
        profile=profile,
        consent=Consent(yes=yes, dry_run=dry_run, as_json=as_json),
    )


def _folder(to: str | None) -> str:
    if to is None:
        raise typer.BadParameter(
            "is missing: the folder of DAGs that Airflow reads, or its S3 URI", param_hint="--to"
        )
    return to


def _only_for(target: Backend, options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if value:
            raise typer.BadParameter(f"is for {target.value} only", param_hint=name)


def upload(
    pipeline: Pipeline,
    parameters: Parameters = None,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Upload its code to S3.

    To the pipeline's workspace, where jobs look for it. Needed for Airflow only: `deploy
    step-functions` uploads by itself.

    Example: `orchestrate upload digits.yaml -p bucket=my-bucket`
    """
    from orchestration.cli.commands import deployment

    deployment.upload(pipeline, parameters or (), region=region, profile=profile, as_json=as_json)


def export(
    form: Annotated[Format, typer.Argument(metavar="cloudformation|terraform", show_default=False)],
    pipeline: Pipeline,
    parameters: Parameters = None,
    unrestricted: Unrestricted = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write; .json: as JSON."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if the file is stale.")
    ] = False,
    definitions: Annotated[
        str | None,
        typer.Option(
            metavar="S3URI", help="Folder for the definitions, which lie in the template otherwise."
        ),
    ] = None,
    account: Annotated[
        str | None, typer.Option(metavar="ID", help="Only account; default: any.")
    ] = None,
    role: Annotated[
        str | None, typer.Option(metavar="ARN", help="Role of your own; none is made then.")
    ] = None,
    sweep_every_h: Hours = 1,
    region: Annotated[
        str | None, typer.Option(help="Only region; default: the pipeline's, else any.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Export what deploying it makes.

    As a CloudFormation template or a Terraform configuration: the state machine, its roles with
    the permissions that the steps need, its schedule, the rules, the companion. AWS is not asked. A
    value may hold `${Name}`: that becomes a parameter of the template. Code folders are uploaded
    with `orchestrate upload`.

    Example: `orchestrate export cloudformation digits.yaml -p 'bucket=${Bucket}' -o stack.yaml`
    """
    from orchestration.cli.commands.deployed import exporting

    exporting.export(
        pipeline,
        form,
        parameters or (),
        unrestricted or (),
        account=account,
        region=region,
        role=role,
        sweep_every_h=sweep_every_h,
        destination=exporting.Destination(
            file=output, check=check, definitions=definitions, as_json=as_json
        ),
    )
