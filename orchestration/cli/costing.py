"""The command that shows costs, and its options."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestration.cli.options import Json, Parameters, Pipeline, Profile, Region

Assumed = Annotated[
    list[str] | None,
    typer.Option(
        "--assume",
        metavar="STAGE.QUANTITY=NUMBER",
        help="hours, elements or gb of a stage; repeatable.",
    ),
]


def cost(
    pipeline: Pipeline,
    parameters: Parameters = None,
    assumed: Assumed = None,
    spot_saving: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share that spot saves, 0.6; at most: nothing.")
    ] = 0.0,
    runs_per_month: Annotated[
        float | None, typer.Option(min=0.0, help="Default: as often as its schedule says.")
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(metavar="USD", help="Exit with 1 if a run may cost more."),
    ] = None,
    monthly_budget: Annotated[
        float | None,
        typer.Option(metavar="USD", help="Exit with 1 if a month may cost more."),
    ] = None,
    from_runs: Annotated[
        bool, typer.Option("--from-runs", help="Expect what earlier runs took in your account.")
    ] = False,
    run_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Show what this run cost instead.")
    ] = None,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Show what it costs, expected and at most.

    By stage: machines for as long as they may run, file systems, endpoints by the month, transfers,
    transitions; each with its price and the day of that. Expected come from the plan that the lock
    file pins, from `--assume`, or from earlier runs; nothing is expected without a word from
    anyone. Only `--from-runs` and `--run-id` ask an account, and they change nothing.

    Example: `orchestrate cost digits.yaml --assume train.hours=0.5 --budget 50`
    """
    from orchestration.cli.commands import costing

    asked = costing.Asked(
        parameters=parameters or (),
        assumed=assumed or (),
        region=region,
        spot_saving=spot_saving,
        runs_per_month=runs_per_month,
    )
    if run_id is not None:
        costing.billed(pipeline, run_id, region=region, profile=profile, as_json=as_json)
        return
    costing.cost(
        pipeline,
        asked,
        costing.Budget(run=budget, month=monthly_budget),
        costing.earlier(pipeline, region, profile) if from_runs else {},
        as_json=as_json,
    )
