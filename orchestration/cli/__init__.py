"""``orchestrate``: validate, render, run and deploy pipelines from a terminal."""

from __future__ import annotations

import gc

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and exit."""
    # Loading makes a great many objects that stay: looking for garbage among them costs a tenth.
    gc.set_threshold(100_000)
    from orchestration.cli.app import app

    app(prog_name="orchestrate")
