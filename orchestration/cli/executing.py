"""The commands for runs of a deployed pipeline, and their options."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestration.cli.options import Json, Parameters, Pipeline, Profile, Region
from orchestration.cli.output import use_json

Execution = Annotated[
    str, typer.Argument(metavar="EXECUTION", help="Its ARN, or the end of it, MACHINE:NAME.")
]
Deployed = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE", help="YAML file, module:attribute, or a deployed pipeline's name."
    ),
]

OfRun = Annotated[
    str,
    typer.Option(
        "--run-id",
        metavar="ID",
        help="The run: the name it was started with, its execution, or its run on Airflow.",
    ),
]
EveryS = Annotated[
    float, typer.Option("--every-s", min=0.1, max=3600, help="Seconds between two looks.")
]


def start(
    pipeline: Pipeline,
    parameters: Parameters = None,
    run_id: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the run: under one name it is started once."),
    ] = None,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Start a run of it where it is deployed.

    On Step Functions, with the parameters checked before. Prints the execution's ARN.

    Example: `orchestrate start digits.yaml -p bucket=my-bucket --run-id 2026-11-22`
    """
    from orchestration.cli.commands.deployed import executing

    executing.start(
        pipeline,
        parameters or (),
        run_id=run_id,
        region=region,
        profile=profile,
        as_json=as_json,
    )


def runs(
    pipeline: Deployed,
    most: Annotated[int, typer.Option("--most", min=1, max=1000, help="How many.")] = 20,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """List its runs where it is deployed.

    The newest first, with state, duration and, of those that failed, error and cause.

    Example: `orchestrate runs digits --most 5`
    """
    from orchestration.cli.commands.deployed import executing

    executing.runs(pipeline, most=most, region=region, profile=profile, as_json=as_json)


def stop(
    execution: Execution,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Stop a run, and clean up after it.

    The state machine's companion stops its jobs and deletes what it acquired; the command waits for
    that. Of an execution that has ended already, what it left is cleaned up.

    Example: `orchestrate stop digits:0f5b7f0e-6e2c-4c5e-9a77-0c2b9f4d1a35`
    """
    from orchestration.cli.commands.deployed import executing

    executing.stop(execution, region=region, profile=profile, as_json=as_json)


def rerun(
    execution: Execution,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Start a failed execution again.

    As the next attempt at the same run: jobs that finished are adopted, failed ones are started
    anew under their names with `-2`, `-3` and so on. The state machine's companion cleans up first.
    """
    from orchestration.cli.commands.deployed import executing

    executing.rerun(execution, region=region, profile=profile, as_json=as_json)


def logs(
    pipeline: Pipeline,
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="The stage that started the jobs.")],
    run_id: OfRun,
    host: Annotated[
        str | None, typer.Option(metavar="HOST", help="Only of this host, algo-1; default: of all.")
    ] = None,
    tail: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Only the last lines of each host.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the jobs have ended.")
    ] = False,
    every_s: EveryS = 5.0,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Print the logs of a stage's jobs.

    Of all hosts, from CloudWatch, each line after the job, the host and the time (UTC). Whatever
    runs the pipeline: Step Functions, Airflow, or `orchestrate run --aws`. A loop's and a repeated
    job's logs follow each other. Exit status: 1 if the stage has started no job in this run.

    Example: `orchestrate logs digits.yaml train --run-id 2026-11-22 --tail 20 --follow`
    """
    from orchestration.cli.commands.deployed import logging

    wanted = logging.Wanted(host=host, tail=tail, follow=follow, every_s=every_s, as_json=as_json)
    logging.logs(pipeline, stage, run_id, wanted, region=region, profile=profile)


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
    region: Region = None,
    profile: Profile = None,
    as_json: Annotated[
        bool, typer.Option("--json", callback=use_json, help="Print a JSON document per look.")
    ] = False,
) -> None:
    """Watch a run until it ends.

    Its stages, the status of their jobs, metrics, the last lines of logs, time and dollars so far;
    without a terminal, a line for each change. It only looks: Ctrl-C ends this command, and the run
    goes on. Exit status: 0 if the run succeeded, 1 if it failed.

    Example: `orchestrate watch digits.yaml --run-id 2026-11-22 --page`
    """
    from orchestration.cli.commands.deployed import watching

    shown = watching.Shown(every_s=every_s, lines=lines, page=page, port=port, as_json=as_json)
    watching.watch(pipeline, run_id, shown, region=region, profile=profile)
