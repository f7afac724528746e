"""The commands that answer the questions of runs."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestration.cli.options import Json, Profile, Region

Run = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="S3 URI of the run, WORKSPACE/12 digits; or, with --workspace, an execution's ARN, "
        "DAG/RUN of Airflow, PIPELINE/RUN of a run from here.",
    ),
]
Stage = Annotated[str, typer.Argument(metavar="STAGE", help="The stage that asks.")]
Comment = Annotated[str, typer.Option(help="Words that go into the run's outputs.")]
Workspace = Annotated[str | None, typer.Option(metavar="S3URI", help="Workspace of the pipeline.")]


def approve(
    run: Run,
    stage: Stage,
    comment: Comment = "",
    workspace: Workspace = None,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Say yes to a run that asks.

    Whatever runs it. The first answer counts, and stands in the run's outputs with your name.

    Example: `orchestrate approve s3://my-bucket/runs/0f5b7f0e6e2c sign_off --comment "gap
    explained"`
    """
    from orchestration.cli.commands import answering

    answering.answer(
        run,
        stage,
        "approved",
        comment=comment,
        workspace=workspace,
        region=region,
        profile=profile,
        as_json=as_json,
    )


def reject(
    run: Run,
    stage: Stage,
    comment: Comment = "",
    workspace: Workspace = None,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Say no to a run that asks.

    Whatever runs it. The first answer counts, and stands in the run's outputs with your name.

    Example: `orchestrate reject s3://my-bucket/runs/7c1d20a4b9e3 sign_off --comment "worse on rare
    classes"`
    """
    from orchestration.cli.commands import answering

    answering.answer(
        run,
        stage,
        "rejected",
        comment=comment,
        workspace=workspace,
        region=region,
        profile=profile,
        as_json=as_json,
    )
