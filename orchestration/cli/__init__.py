"""``orchestrate``: validate, render, run and deploy pipelines from a terminal."""

from __future__ import annotations

import gc
import os

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and exit."""
    # Loading makes a great many objects that stay: looking for garbage among them costs a tenth.
    gc.set_threshold(100_000)
    # Pydantic would look for plugins in the metadata of every distribution, and there are none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from orchestration.cli.app import app

    app(prog_name="orchestrate")
