"""``orchestrate``: validate, render, run and deploy pipelines from a terminal."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer import Typer

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and exit."""
    from orchestration.cli.commands.reading.locked import render

    if render(sys.argv[1:]):
        return
    # Loading makes a great many objects that stay: looking for garbage among them costs a tenth.
    gc.set_threshold(100_000)
    # Pydantic would look for plugins in the metadata of every distribution, and there are none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from orchestration.cli.app import app

    _choose(app, sys.argv[1:])
    app(prog_name="orchestrate")


def _choose(app: Typer, arguments: Sequence[str]) -> None:
    """Leave only the command that is the first argument, where it is one: to make 30 takes long."""
    from typer.main import get_command_name

    for command in app.registered_commands:
        name = command.name or get_command_name(getattr(command.callback, "__name__", ""))
        if arguments[:1] == [name]:
            app.registered_commands = [command]
            return
