"""Options that many commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestration.cli.commands.rendering import Backend
from orchestration.cli.output import use_json


def names_of_templates() -> list[str]:
    """Return what a shell completes after ``init --template``."""
    from orchestration.cli.commands.beginning.starting import TEMPLATES

    return list(TEMPLATES)


def names_of_errors() -> list[str]:
    """Return what a shell completes after ``explain``."""
    from orchestration.explanations import explanations

    return list(explanations())


Json = Annotated[bool, typer.Option("--json", callback=use_json, help="Print one JSON document.")]
Region = Annotated[
    str | None,
    typer.Option(help="AWS region; default: the pipeline's, else from the environment."),
]
Profile = Annotated[str | None, typer.Option(help="AWS profile; default: from the environment.")]
Yes = Annotated[
    list[str] | None,
    typer.Option("--approve", metavar="STAGE", help="Say yes to its question; repeatable."),
]
No = Annotated[
    list[str] | None,
    typer.Option("--reject", metavar="STAGE", help="Say no to its question; repeatable."),
]
RunId = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Name of the run; one that died or failed goes on."),
]
Uploads = Annotated[
    list[str] | None,
    typer.Option("--upload", metavar="LOCAL=S3URI", help="File or folder to put into S3."),
]
PipelineHere = Annotated[
    str | None,
    typer.Argument(
        metavar="PIPELINE", help="YAML file or module:attribute; default: as in run.yaml."
    ),
]
InAccount = Annotated[
    bool, typer.Option("--aws", help="In an account at AWS, which costs; only directly.")
]
TimeScale = Annotated[
    float, typer.Option(min=0.0001, max=1.0, help="Real seconds per second of AWS.")
]
Keep = Annotated[
    bool,
    typer.Option(
        "--keep", help="Keep logs and S3 in .orchestration/; on a terminal, the account too."
    ),
]
Page = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="HTML page to write about the run."),
]
Watched = Annotated[
    bool, typer.Option("--watch", help="Run it again whenever its files change, until Ctrl-C.")
]
Agreed = Annotated[bool, typer.Option("--yes", "-y", help="Change the account without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the changes.")]
Full = Annotated[bool, typer.Option("--full", help="Show changes as whole diffs of JSON.")]
Measurements = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="File of measurements; default: NAME.measurements.json beside NAME.yaml.",
    ),
]
Pipeline = Annotated[str, typer.Argument(metavar="PIPELINE", help="YAML file or module:attribute.")]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter", "-p", metavar="NAME=VALUE", help="Value of a parameter; repeatable."
    ),
]
On = Annotated[Backend, typer.Option("--on", help="Where it is deployed.")]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="AIRFLOW_API_URL",
        help="Address of Airflow's API server; its token is read from AIRFLOW_CLI_TOKEN.",
    ),
]
