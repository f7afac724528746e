"""``orchestrate``: validate, render, run and deploy pipelines from a terminal."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and exit."""
    from orchestration.cli.app import app

    app(prog_name="orchestrate")
