"""The commands for runs of a deployed pipeline, and their options."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestration.cli.options import Json, Parameters, Pipeline, Profile, Region

Execution = Annotated[
    str, typer.Argument(metavar="EXECUTION", help="Its ARN, or the end of it, MACHINE:NAME.")
]
Deployed = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE", help="YAML file, module:attribute, or a deployed pipeline's name."
    ),
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
