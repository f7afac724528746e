"""Options that many commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestration.cli.output import use_json

Json = Annotated[bool, typer.Option("--json", callback=use_json, help="Print one JSON document.")]
Region = Annotated[
    str | None,
    typer.Option(help="AWS region; default: the pipeline's, else from the environment."),
]
Profile = Annotated[str | None, typer.Option(help="AWS profile; default: from the environment.")]
