"""The commands about single stages and scripts: ``probe``, ``check-script``, ``vendor-runtime``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from orchestration.cli.options import Json, Parameters, Pipeline, Profile, Region, Uploads

File = Annotated[
    Path, typer.Argument(metavar="PIPELINE", exists=True, dir_okay=False, help="YAML file.")
]
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
FromRuns = Annotated[
    bool, typer.Option("--from-runs", help="Read past jobs of the stage instead; starts none.")
]
Agreed = Annotated[bool, typer.Option("--yes", "-y", help="Run the jobs without asking.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only show the jobs, and what they may cost.")
]
Written = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="FILE",
        dir_okay=False,
        help="Write the jobs as a pipeline, for Airflow or Step Functions; runs none.",
    ),
]
_OF_JOBS: Final = ("aws", "parallel", "uploads")
_OF_NEW_JOBS: Final = (*_OF_JOBS, "to", "jobs", "steps", "parameters", "channels", "dry_run")


def probe(
    context: typer.Context,
    file: File,
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
    runs: FromRuns = False,
    parameters: Parameters = None,
    channels: Channels = None,
    uploads: Uploads = None,
    region: Region = None,
    profile: Profile = None,
    measurements: Added = None,
    yes: Agreed = False,
    dry_run: DryRun = False,
    to: Written = None,
    as_json: Json = False,
) -> None:
    """Measure what decides its plan.

    Runs a few short jobs of a stage with `strategy: {kind: auto}`, of the candidates that may be
    the best, and reads step time and memory. `plan` uses the file of measurements. Without `--aws`
    they run on an embedded AWS, which costs nothing and says how fast this machine is. With
    `--from-runs`, past jobs with the stage's tags are read from your account instead. With `--to`,
    they become a pipeline of their own, with the given parameters as defaults, which you render and
    run as any other; `--from-runs` then reads its jobs, too.

    Example: `orchestrate probe chat.yaml --aws --dry-run`
    """
    from orchestration.cli.commands.changing import Consent
    from orchestration.cli.commands.probing import measuring, past
    from orchestration.cli.commands.probing.accounts import Where

    _refuse(context, {"--to": to, "--measurements": measurements}, runs=runs)
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
        past.from_runs(file, stage, where, measurements=measurements, as_json=as_json)
        return
    measuring.probe(
        file, stage, where,
        jobs=jobs, steps=steps, measurements=measurements,
        consent=Consent(yes=yes, dry_run=dry_run, as_json=as_json), to=to,
    )  # fmt: skip


def _refuse(context: typer.Context, files: Mapping[str, Path | None], *, runs: bool) -> None:
    """Refuse options without an effect, and files that can't be written, before anything is run."""
    if runs:
        _without_effect(context, "--from-runs", _OF_NEW_JOBS)
    elif files["--to"] is not None:
        _without_effect(context, "--to", (*_OF_JOBS, "region", "profile"))
    for option, file in files.items():
        if file is not None and not file.parent.is_dir():
            raise typer.BadParameter(f"{file.parent} is no folder", param_hint=option)


def _without_effect(context: typer.Context, other: str, names: Collection[str]) -> None:
    """Refuse the options that are given and do nothing beside another."""
    given = [
        each.opts[0]
        for each in context.command.params
        if each.name in names
        and (source := context.get_parameter_source(each.name)) is not None
        and source.name == "COMMANDLINE"
    ]
    if given:
        raise typer.BadParameter(f"no effect with {other}", param_hint=" / ".join(given))


def _channel(text: str) -> tuple[str, str]:
    from orchestration.execution.parameters import names_bucket

    name, equals, uri = text.partition("=")
    if not (name and equals and names_bucket(uri)):
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


def vendor_runtime(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIRECTORY", exists=True, file_okay=False, help="Folder of a job's code."
        ),
    ],
    as_json: Json = False,
) -> None:
    """Copy the runtime of training scripts.

    To DIRECTORY/orchestration_runtime, which needs nothing but the standard library of Python 3.8.
    Run again, it refreshes the copy.

    Example: `orchestrate vendor-runtime train`
    """
    from orchestration.cli.commands.beginning import vendoring

    vendoring.vendor_runtime(directory, as_json=as_json)
