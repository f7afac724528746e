"""The commands of ``orchestrate`` and their options; their code is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestration.cli import answers, deploying, executing, inspecting, probing
from orchestration.cli.commands.rendering import Artefact, Backend, Driver, Format
from orchestration.cli.naming import use_stages
from orchestration.cli.options import (
    InAccount,
    Json,
    Keep,
    No,
    Page,
    Parameters,
    Pipeline,
    PipelineHere,
    Profile,
    Region,
    RunId,
    TimeScale,
    Uploads,
    Watched,
    Yes,
    names_of_templates,
)
from orchestration.cli.output import Commands, say
from orchestration.cli.questions import Replies

app = typer.Typer(
    cls=Commands,
    help="SageMaker training pipelines for Airflow and Step Functions, described once.\n\n"
    "PIPELINE is a YAML file, or module:attribute. Exit status: 0 done; 1 the pipeline is wrong, "
    "or the run failed; 2 the command is wrong.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

Target = Annotated[
    Artefact, typer.Argument(metavar="step-functions|companion|airflow", show_default=False)
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write or compare.")
]
Check = Annotated[
    bool, typer.Option("--check", help="Write nothing; exit with 1 if the file is stale.")
]


def _version(value: bool) -> None:
    if value:
        from orchestration import __version__

        say(f"orchestrate {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback has done it
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    stages: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE", help="Module with kinds of stages; repeatable."),
    ] = None,
) -> None:
    use_stages(stages or ())
    context.call_on_close(lambda: use_stages(()))


@app.command()
def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="New folder; its name is the pipeline's.")
    ],
    template: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="scikit-learn, text-classifier, xgboost, fsdp-finetune or tuning.",
            autocompletion=names_of_templates,
        ),
    ] = "scikit-learn",
    as_json: Json = False,
) -> None:
    """Begin a pipeline of your own.

    Writes a folder with a pipeline that runs, its scripts, made-up data, a DAG file, a Makefile and
    CI. `cd DIRECTORY && orchestrate run` trains, evaluates and deploys it on this machine.

    Example: `orchestrate init fraud --template tuning`
    """
    from orchestration.cli.commands.beginning import starting

    starting.init(directory, template, as_json=as_json)


@app.command()
def validate(
    pipelines: Annotated[
        list[str],
        typer.Argument(
            metavar="PIPELINE", help="YAML files, module:attribute, or Airflow's DAG files."
        ),
    ],
    on: Annotated[
        list[Backend] | None,
        typer.Option("--on", help="Only for this backend; default: both."),
    ] = None,
    parameter: Parameters = None,
    as_json: Json = False,
) -> None:
    """Report every problem.

    Example: `orchestrate validate digits.yaml --on step-functions`
    """
    from orchestration.cli.commands import validation

    validation.validate(pipelines, on or (), parameter or (), as_json=as_json)


@app.command()
def render(
    artefact: Target,
    pipeline: Pipeline,
    fragment: Annotated[
        str | None,
        typer.Option(
            metavar="PREFIX", help="As one state for a larger state machine; names begin so."
        ),
    ] = None,
    output: Output = None,
    check: Check = False,
    as_json: Json = False,
) -> None:
    """Render it for a backend.

    A state machine's definition in Amazon States Language, that of its companion, which cleans up
    after executions, or the specification of a DAG, as JSON.

    Example: `orchestrate render step-functions digits.yaml -o digits.asl.json`
    """
    from orchestration.cli.commands import rendering

    rendering.render(artefact, pipeline, output, check=check, fragment=fragment, as_json=as_json)


@app.command()
def graph(
    pipeline: Pipeline,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="Format; default: as the file is called, else mermaid."),
    ] = None,
    output: Output = None,
    check: Check = False,
    as_json: Json = False,
) -> None:
    """Draw its steps (mermaid, dot) or its stages (svg, png); needs no browser.

    Example: `orchestrate graph digits.yaml -o digits.png`
    """
    from orchestration.cli.commands import rendering

    rendering.graph(pipeline, form, output, check=check, as_json=as_json)


@app.command()
def lock(pipeline: Pipeline, check: Check = False, as_json: Json = False) -> None:
    """Write its lock file.

    It holds the digests of the folders of code, so that the pipeline can be loaded without them,
    and, of a YAML file, what it is rendered to, so that DAG files and `render` need not do that
    again. A Python file (`digits.py`) stands for all pipelines that it builds.

    Example: `orchestrate lock digits.yaml`
    """
    from orchestration.cli.commands import rendering

    rendering.lock(pipeline, check=check, as_json=as_json)


@app.command()
def schema(output: Output = None, check: Check = False, as_json: Json = False) -> None:
    """Write the JSON Schema of YAML files.

    An editor with a YAML language server completes and checks a file whose first line is
    `# yaml-language-server: $schema=FILE`.

    Example: `orchestrate schema -o pipeline.schema.json`
    """
    from orchestration.cli.commands import rendering

    rendering.schema(output, check=check, as_json=as_json)


@app.command()
def run(
    pipeline: PipelineHere = None,
    on: Annotated[Driver, typer.Option("--on", help="What runs it.")] = Driver.DIRECT,
    parameters: Parameters = None,
    uploads: Uploads = None,
    run_id: RunId = None,
    aws: InAccount = False,
    region: Region = None,
    profile: Profile = None,
    time_scale: TimeScale = 0.02,
    approve: Yes = None,
    reject: No = None,
    keep: Keep = False,
    report: Page = None,
    watch: Watched = False,
    as_json: Json = False,
) -> None:
    """Run it from this machine.

    On an embedded AWS: no account, no cost. SageMaker's jobs really run, as local processes. The
    parameter `role` is optional. With `--aws` in your own account instead: this process starts the
    jobs, follows them and cleans up. Ctrl-C stops what runs; a second one leaves at once. After a
    crash, the same command with the same `--run-id` goes on, and pays nothing twice. Parameters and
    uploads for the embedded AWS are also read from `run.yaml` beside the pipeline.

    Example: `orchestrate run digits.yaml --report run.html --keep`
    """
    replies = Replies(approve or (), reject or ())
    if aws:
        from orchestration.cli.commands import account

        account.check_options(on, uploads or (), keep=keep, report=report, watch=watch)
        account.run(
            pipeline,
            parameters or (),
            run_id=run_id,
            region=region,
            profile=profile,
            replies=replies,
            as_json=as_json,
        )
        return
    from orchestration.cli.commands import running
    from orchestration.cli.commands.embedded import leaving

    running.check_options(region, profile)
    running.run_or_watch(
        watch,
        pipeline,
        on,
        parameters or (),
        uploads or (),
        run_id=run_id,
        time_scale=time_scale,
        replies=replies,
        left=leaving.Left(keep, report),
        as_json=as_json,
    )


@app.command()
def demo(as_json: Json = False) -> None:
    """Run a demo on both backends on this machine.

    Trains, evaluates and deploys a classifier of digits on an embedded AWS, first as a state
    machine, then as an Airflow DAG, and queries the endpoints. Needs a checkout of the repository.

    Example: `orchestrate demo`
    """
    from orchestration.cli.commands.demo import demo as show

    show(as_json=as_json)


app.command()(inspecting.plan)
app.command()(inspecting.catalog)
app.command()(inspecting.cost)
app.command()(inspecting.schedule)
app.command()(probing.probe)
app.command("check-script")(probing.check_script)
app.command("vendor-runtime")(probing.vendor_runtime)
app.command()(deploying.deploy)
app.command()(deploying.promote)
app.command()(deploying.rollback)
app.command()(deploying.destroy)
app.command()(deploying.export)
app.command()(inspecting.iam)
app.command()(inspecting.explain)
app.command()(inspecting.doctor)
app.command()(inspecting.lint)
app.command("import")(inspecting.import_)
app.command()(executing.start)
app.command()(executing.runs)
app.command()(executing.stop)
app.command()(executing.rerun)
app.command()(executing.logs)
app.command()(executing.watch)
app.command()(executing.backfill)
app.command()(deploying.upload)
app.command()(answers.approve)
app.command()(answers.reject)
