"""The commands for runs of a deployed pipeline, and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestration.cli.commands.rendering import Backend
from orchestration.cli.options import (
    Agreed,
    DryRun,
    Json,
    On,
    Parameters,
    Pipeline,
    Profile,
    Region,
    Url,
)
from orchestration.cli.output import use_json

Execution = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="ARN of an execution, its end, MACHINE:NAME, or DAG/RUN of Airflow."
    ),
]
Deployed = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE", help="YAML file, module:attribute, or a deployed pipeline's name."
    ),
]

PipelineOrStage = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE",
        help="YAML file or module:attribute; left out: that of run.yaml, or the folder's only one.",
    ),
]
StageOfJobs = Annotated[
    str, typer.Argument(metavar="STAGE", help="The stage that started the jobs.")
]
OfRun = Annotated[
    str,
    typer.Option(
        "--run-id",
        metavar="ID",
        help="The run: the name it was started with, its execution, or its run on Airflow.",
    ),
]
OfRunOrKept = Annotated[
    str | None,
    typer.Option("--run-id", metavar="ID", help="The run, as for `watch`; not needed with --kept."),
]
EveryS = Annotated[
    float, typer.Option("--every-s", min=0.1, max=3600, help="Seconds between two looks.")
]

Since = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TIME",
        help="The first time, UTC unless it says; default: the schedule's start.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option("--to", metavar="TIME", help="The first time that is not meant; default: now."),
]


def start(
    pipeline: Pipeline,
    parameters: Parameters = None,
    run_id: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the run: under one name it is started once."),
    ] = None,
    on: On = Backend.STEP_FUNCTIONS,
    url: Url = None,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Start a run of it where it is deployed.

    The parameters are checked before. Prints the execution's ARN, or DAG/RUN of Airflow.

    Example: `orchestrate start digits.yaml -p bucket=my-bucket --run-id 2026-11-22`
    """
    from orchestration.cli.commands.deployed import executing
    from orchestration.cli.commands.deployed.places import Place

    executing.start(
        pipeline,
        parameters or (),
        run_id=run_id,
        place=Place(on=on, url=url, region=region, profile=profile),
        as_json=as_json,
    )


def runs(
    pipeline: Deployed,
    most: Annotated[int, typer.Option("--most", min=1, max=1000, help="How many.")] = 20,
    on: On = Backend.STEP_FUNCTIONS,
    url: Url = None,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """List its runs where it is deployed.

    The newest first, with state, duration and, of those that failed, error and cause.

    Example: `orchestrate runs digits --most 5`
    """
    from orchestration.cli.commands.deployed import executing
    from orchestration.cli.commands.deployed.places import Place

    place = Place(on=on, url=url, region=region, profile=profile)
    executing.runs(pipeline, most=most, place=place, as_json=as_json)


def stop(
    execution: Execution,
    on: On = Backend.STEP_FUNCTIONS,
    url: Url = None,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Stop a run, and clean up after it.

    The state machine's companion stops its jobs and deletes what it acquired; the command waits for
    that. Of an execution that has ended already, what it left is cleaned up. On Airflow the run is
    marked as failed, and its tasks stop their jobs.

    Example: `orchestrate stop digits:0f5b7f0e-6e2c-4c5e-9a77-0c2b9f4d1a35`
    """
    from orchestration.cli.commands.deployed import executing
    from orchestration.cli.commands.deployed.places import Place

    place = Place(on=on, url=url, region=region, profile=profile)
    executing.stop(execution, place=place, as_json=as_json)


def rerun(
    execution: Execution,
    on: On = Backend.STEP_FUNCTIONS,
    url: Url = None,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Start a failed run again.

    As the next attempt at the same run: jobs that finished are adopted, failed ones are started
    anew under their names with `-2`, `-3` and so on. The state machine's companion cleans up first;
    on Airflow all tasks are cleared.

    Example: `orchestrate rerun digits/friday --on airflow --url https://airflow.example.com`
    """
    from orchestration.cli.commands.deployed import executing
    from orchestration.cli.commands.deployed.places import Place

    place = Place(on=on, url=url, region=region, profile=profile)
    executing.rerun(execution, place=place, as_json=as_json)


def _not_with_kept(context: typer.Context) -> None:
    """Refuse the options that ask for something in an account."""
    for name in ("host", "follow", "every_s", "on", "url", "region", "profile"):
        # A default, or a variable that is there for other commands, asks for nothing.
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(
                "is of jobs in an account, not of a run that was kept on this machine",
                param_hint=f"--{name.replace('_', '-')}",
            )


def _pipeline_here(stage: str) -> str:
    """Return the pipeline of this folder, of which a stage alone was named."""
    from orchestration.cli import run_file

    if ":" in stage or Path(stage).is_file():
        raise typer.BadParameter("is missing", param_hint="STAGE")
    return run_file.pipeline_here(or_the_only_one=True)


def logs(
    context: typer.Context,
    pipeline: PipelineOrStage,
    stage: StageOfJobs = "",
    run_id: OfRunOrKept = None,
    kept: Annotated[
        bool,
        typer.Option("--kept", help="Of a run on this machine that was kept; default: the newest."),
    ] = False,
    host: Annotated[
        str | None, typer.Option(metavar="HOST", help="Only of this host, algo-1; default: of all.")
    ] = None,
    tail: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Only the last lines of each host.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until all jobs so far have ended.")
    ] = False,
    every_s: EveryS = 5.0,
    on: On = Backend.STEP_FUNCTIONS,
    url: Url = None,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Print the logs of a stage's jobs.

    Of all hosts, from CloudWatch, each line after the job, the host and the time (UTC). Whatever
    runs the pipeline: Step Functions, Airflow, or `orchestrate run --aws`. A loop's and a repeated
    job's logs follow each other; --follow ends between two of them, if none has been started by
    then. With --on airflow, also Airflow's own logs of its tasks that failed, or of all its tasks
    if it has started no job. With --kept, those of a run of `orchestrate run --keep`, or of the
    newest that failed; these are also meant where a stage alone is named. Exit status: 1 if nothing
    of the stage has been started in this run.

    Example: `orchestrate logs digits.yaml train --run-id 2026-11-22 --tail 20 --follow`
    """
    if not stage:
        pipeline, stage, kept = _pipeline_here(pipeline), pipeline, kept or run_id is None
    if kept:
        _not_with_kept(context)
        from orchestration.cli.commands.embedded import kept_logs

        kept_logs.logs(pipeline, stage, run_id, tail=tail, as_json=as_json)
        return
    if run_id is None:
        raise typer.BadParameter("is needed, or --kept", param_hint="--run-id")
    from orchestration.cli.commands.deployed import logging
    from orchestration.cli.commands.deployed.places import Place

    wanted = logging.Wanted(host=host, tail=tail, follow=follow, every_s=every_s, as_json=as_json)
    place = Place(on=on, url=url, region=region, profile=profile)
    logging.logs(pipeline, stage, run_id, wanted, place)


def watch(
    pipeline: Pipeline,
    run_id: OfRun,
    every_s: EveryS = 5.0,
    lines: Annotated[
        int, typer.Option(min=0, max=200, help="Last lines of each job's log that are shown.")
    ] = 10,
    page: Annotated[
        bool, typer.Option("--page", help="Also as a page that this machine alone can reach.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page; default: a free one.")
    ] = 0,
    on: On = Backend.STEP_FUNCTIONS,
    url: Url = None,
    region: Region = None,
    profile: Profile = None,
    as_json: Annotated[
        bool, typer.Option("--json", callback=use_json, help="Print a JSON document per look.")
    ] = False,
) -> None:
    """Watch a run until it ends.

    Its stages, the status of their jobs, metrics, the last lines of logs, time and dollars so far;
    without a terminal, a line for each change. It only looks: Ctrl-C ends this command, and the run
    goes on. Exit status: 0 if the run succeeded, 1 if it failed or there is none, 3 if it can't be
    seen any more: five looks in a row failed, and what becomes of it is not known.

    Example: `orchestrate watch digits.yaml --run-id 2026-11-22 --page`
    """
    from orchestration.cli.commands.deployed import watching
    from orchestration.cli.commands.deployed.places import Place

    shown = watching.Shown(every_s=every_s, lines=lines, page=page, port=port, as_json=as_json)
    place = Place(on=on, url=url, region=region, profile=profile)
    watching.watch(pipeline, run_id, shown, place)


def backfill(
    pipeline: Pipeline,
    since: Since = None,
    until: Until = None,
    at_most: Annotated[
        int, typer.Option("--at-most", min=1, max=100, help="Runs side by side.")
    ] = 1,
    on: Annotated[Backend, typer.Option("--on", help="Where it is.")] = Backend.STEP_FUNCTIONS,
    url: Url = None,
    parameters: Parameters = None,
    dry_run: DryRun = False,
    yes: Agreed = False,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Run it for times of its schedule that are over.

    On Step Functions: a run for each time, with the identity and the values that the schedule would
    have given it. A time whose run was or is there, however it ended, is left out. Shows what it
    would start, asks, starts the oldest first, and waits while as many run as may. Ctrl-C leaves
    the runs that go on; the same command continues. With `--on airflow` and the address of its API
    server, Airflow makes the runs that are missing and starts them; without an address, its command
    that does this is printed.

    Example: `orchestrate backfill nightly.yaml --from 2027-01-01 --to 2027-02-01 --dry-run`
    """
    from orchestration.cli.commands.changing import Consent
    from orchestration.cli.commands.deployed import backfilling
    from orchestration.cli.commands.deployed.places import Place

    consent = Consent(yes=yes, dry_run=dry_run, as_json=as_json)
    if on is Backend.AIRFLOW and url is None:
        backfilling.airflow(pipeline, since, until, at_most=at_most, as_json=as_json)
        return
    if on is Backend.AIRFLOW:
        place, given = Place(on=on, url=url), parameters or ()
        backfilling.by_airflow(
            pipeline, since, until, given, at_most=at_most, place=place, consent=consent
        )
        return
    backfilling.step_functions(
        pipeline,
        since,
        until,
        parameters or (),
        at_most=at_most,
        region=region,
        profile=profile,
        consent=consent,
    )
