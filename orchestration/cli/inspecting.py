"""The commands that show plans, permissions, shortcomings and costs, and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestration.cli.commands.rendering import Backend
from orchestration.cli.options import (
    Json,
    Measurements,
    On,
    Parameters,
    Pipeline,
    Profile,
    Region,
    Url,
    names_of_errors,
)

Assumed = Annotated[
    list[str] | None,
    typer.Option(
        "--assume",
        metavar="STAGE.QUANTITY=NUMBER",
        help="hours, elements, gb or log_gb of a stage; repeatable.",
    ),
]

Pinning = Annotated[
    bool, typer.Option("--update", help="Pin the plans in the pipeline's lock file.")
]


def plan(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Pipeline (YAML, Python), or a request.",
        ),
    ],
    stage: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this stage of the pipeline.")
    ] = None,
    update: Pinning = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="HTML page to write, with figures.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show other plans, and everything that was rejected.")
    ] = False,
    measurements: Measurements = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the pinned plans with what a run took.")
    ] = False,
    run_id: Annotated[
        str | None, typer.Option(metavar="ID", help="With --check; default: the latest run.")
    ] = None,
    account: Annotated[
        bool, typer.Option("--account", help="Stay within the quotas of your account; reads only.")
    ] = False,
    region: Region = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Pick machines and distribution.

    For each stage with `strategy: {kind: auto}`, or for a request in its own file: the instances,
    the layout of the model, the time and cost, and why the alternatives were rejected. After a run,
    `--check` says how far the pinned plans were off.

    Example: `orchestrate plan chat.yaml --report plan.html`
    """
    from orchestration.cli.commands import checking, planning, planning_python

    if check:
        checking.check(
            file, stage=stage, run_id=run_id, region=region, profile=profile, as_json=as_json
        )
        return
    act = planning_python.plan_file if file.suffix == ".py" else planning.plan
    act(
        file,
        report,
        stage=stage,
        update=update,
        everything=everything,
        as_json=as_json,
        measurements=measurements,
        limits=planning.account_limits(file, region, profile) if account else None,
    )


def catalog(
    pattern: Annotated[
        str, typer.Argument(metavar="PATTERN", help="Instance types, with * for any text.")
    ] = "ml.*",
    as_json: Json = False,
) -> None:
    """Show instance types and prices.

    The planner's data about them, with dates and sources.

    Example: `orchestrate catalog 'ml.g5.*'`
    """
    from orchestration.cli.commands import planning

    planning.catalog(pattern, as_json=as_json)


def iam(
    pipeline: Pipeline,
    who: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            metavar="WHO",
            help="machine, jobs, scheduler, companion, copying, deployer, doctor or airflow.",
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

    Example: `orchestrate iam digits.yaml --account 123456789012 --region us-east-1 --for jobs
    -p bucket=my-bucket`
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


def explain(
    error: Annotated[
        str | None,
        typer.Argument(
            metavar="[ERROR]",
            help="Its name: NoCheckpoints, JobFailed, AccessDenied.",
            autocompletion=names_of_errors,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain an error: what happened, and what to do.

    With an example of its cause and the stages that it comes from. Without a name: all errors, one
    a line. Nothing is asked for over a network.

    Example: `orchestrate explain NoCheckpoints`
    """
    from orchestration.cli.commands.reading import explaining

    explaining.explain(error, as_json=as_json)


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
    connection: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Connection of Airflow's tasks; with --url: aws_default."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            help="Address of the API server that knows it, not the Airflow installed here; its "
            "token is read from AIRFLOW_CLI_TOKEN."
        ),
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
        connection=connection,
        url=url,
        region=region,
        profile=profile,
        as_json=as_json,
    )


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
    on: On = Backend.STEP_FUNCTIONS,
    url: Url = None,
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
    from orchestration.cli.commands.costs import billing, estimating
    from orchestration.cli.commands.deployed.places import Place

    asked = estimating.Asked(
        parameters=parameters or (),
        assumed=assumed or (),
        region=region,
        spot_saving=spot_saving,
        runs_per_month=runs_per_month,
    )
    if run_id is not None:
        place = Place(on=on, url=url, region=region, profile=profile)
        billing.billed(pipeline, run_id, place, as_json=as_json)
        return
    estimating.cost(
        pipeline,
        asked,
        estimating.Budget(run=budget, month=monthly_budget),
        billing.earlier(pipeline, region, profile) if from_runs else {},
        as_json=as_json,
    )


def lint(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Definitions of state machines in JSON or YAML, by anyone."
        ),
    ],
    as_json: Json = False,
) -> None:
    """Report what is wrong with state machines, whoever wrote them.

    Integrations that do not exist, fields of requests and their casing, names and paths in
    expressions, handlers, dead ends, limits, what a failure leaves running. Errors are what Step
    Functions refuses or what fails a run: then the exit status is 1. Warnings leave it 0.

    Example: `orchestrate lint statemachine.asl.json`
    """
    from orchestration.cli.commands.reading import linting

    linting.lint(files, as_json=as_json)


def schedule(
    pipeline: Pipeline,
    count: Annotated[int, typer.Option("--next", min=1, max=1000, help="Moments to show.")] = 10,
    after: Annotated[
        str | None, typer.Option(metavar="TIME", help="After this; UTC unless it says. Now.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show when it runs next by its schedule: cron, a rate, or once.

    By the rules of EventBridge Scheduler: a time that clocks skip is not run, one that they repeat
    runs once. Says where Airflow does otherwise.

    Example: `orchestrate schedule dags/llm_fsx.yaml --next 3`
    """
    from orchestration.cli.commands import scheduling

    scheduling.schedule(pipeline, count, after, as_json=as_json)


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A request, a SageMaker Pipeline, a state machine, or a DAG file (.py).",
        ),
    ],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the pipeline; default: the file's own.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a pipeline of a training job's request, a SageMaker Pipeline, a state machine or a DAG.

    Prints its YAML, and on standard error what it does otherwise: the pipeline is rendered and its
    requests compared. What no field says goes into `extra_request`, or into a stage that makes the
    request as it is; nothing is left out silently.

    Example: `orchestrate import request.json -o pipeline.yaml`
    """
    from orchestration.cli.commands.reading import importing

    importing.import_(file, name, output, as_json=as_json)
