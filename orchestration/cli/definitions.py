"""The commands for definitions that others wrote, and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestration.cli.options import Json


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
