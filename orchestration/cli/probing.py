"""The options of the commands that try a part of a pipeline: ``probe`` and ``check-script``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestration.cli.options import Json, Parameters, Pipeline, Profile, Region, Uploads

Channels = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="NAME=S3URI", help="Data in another place; repeatable."),
]
Added = Annotated[
    Path | None,
    typer.Option(
        "--measurements",
        metavar="FILE",
        dir_okay=False,
        help="File to add to; default with --aws: NAME.measurements.json beside NAME.yaml.",
    ),
]


def probe(
    file: Annotated[
        Path,
        typer.Argument(metavar="PIPELINE", exists=True, dir_okay=False, help="YAML file."),
    ],
    stage: Annotated[
        str | None, typer.Argument(metavar="[STAGE]", help="Default: the one that asks for a plan.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, max=16, help="Most jobs to run.")] = 3,
    parallel: Annotated[
        int, typer.Option(min=1, max=16, help="Most jobs that run at a time, with --aws.")
    ] = 3,
    steps: Annotated[int, typer.Option(min=4, max=1000, help="Steps of each job.")] = 20,
    aws: Annotated[
        bool, typer.Option("--aws", help="In an account at AWS, which costs; asks first.")
    ] = False,
    runs: Annotated[
        bool, typer.Option("--from-runs", help="Read past jobs of the stage instead; starts none.")
    ] = False,
    parameters: Parameters = None,
    channels: Channels = None,
    uploads: Uploads = None,
    region: Region = None,
    profile: Profile = None,
    measurements: Added = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Run the jobs without asking.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the jobs, and what they may cost.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure what decides its plan.

    Runs a few short jobs of a stage with `strategy: {kind: auto}`, of the candidates that may be
    the best, and reads step time and memory. `plan` uses the file of measurements. Without `--aws`
    they run on an embedded AWS, which costs nothing and says how fast this machine is. With
    `--from-runs`, past jobs with the stage's tags are read from your account instead.
    """
    from orchestration.cli.commands.changing import Consent
    from orchestration.cli.commands.probing import measuring
    from orchestration.cli.commands.probing.accounts import Where

    where = Where(
        aws=aws,
        region=region,
        profile=profile,
        parameters=parameters or (),
        uploads=uploads or (),
        channels=dict(map(_channel, channels or ())),
        parallel=parallel,
    )
    if runs:
        measuring.from_runs(file, stage, where, measurements=measurements, as_json=as_json)
        return
    measuring.probe(
        file, stage, where,
        jobs=jobs, steps=steps, measurements=measurements,
        consent=Consent(yes=yes, dry_run=dry_run, as_json=as_json),
    )  # fmt: skip


def _channel(text: str) -> tuple[str, str]:
    name, equals, uri = text.partition("=")
    if not (name and equals and uri.startswith("s3://")):
        raise typer.BadParameter(f"expected NAME=s3://…, got {text}", param_hint="--channel")
    return name, uri


Folders = Annotated[
    list[str] | None,
    typer.Option(
        "--channel", metavar="NAME=FOLDER", help="Data of an input, or a file; repeatable."
    ),
]


def check_script(
    pipeline: Pipeline,
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="The stage whose script runs.")],
    channels: Folders = None,
    parameters: Parameters = None,
    uploads: Uploads = None,
    request: Annotated[
        str | None,
        typer.Option(metavar="JSON|@FILE", help="What a deployed model has to answer."),
    ] = None,
    content_type: Annotated[
        str, typer.Option(metavar="TYPE", help="Content type of the request.")
    ] = "application/json",
    as_json: Json = False,
) -> None:
    """Run one stage's script alone, as its container starts it.

    On this machine, without an account and without the other stages: a training job (also of a
    search), an evaluation, a processing job, a batch transform, or a model that is loaded and
    answers a request; in a loop, for the first element. Shows the variables that the script gets,
    its metrics, checkpoints and results, and where it fails the last lines with the traceback. Data
    comes from --channel (`train` of a training job; `model`, `checkpoints` and `data` of an
    evaluation; `model` and `data` of a batch transform; `model` of a deployment), else from the
    uploads of `run.yaml`, else from what checks of the other stages wrote. Exit status: 0, or 1 if
    it failed.

    Example: `orchestrate check-script churn.yaml train --channel train=customers/train`
    """
    from orchestration.cli.commands.embedded import scripts

    scripts.check_script(
        pipeline,
        stage,
        channels=channels or (),
        parameters=parameters or (),
        uploads=uploads or (),
        request=request,
        content_type=content_type,
        as_json=as_json,
    )
