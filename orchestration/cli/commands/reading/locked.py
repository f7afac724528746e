"""``orchestrate render`` of a file whose lock file is fresh: that holds what is to be printed.

Neither Typer nor a pipeline is loaded, which is nine tenths of the time. What is not as simple, or
not certain, is left to the whole command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path


def render(arguments: Sequence[str]) -> bool:
    """Do what ``orchestrate`` is asked with these arguments, or return False and do nothing."""
    match arguments:
        case ["render", ("airflow" | "step-functions") as backend, pipeline, *options]:
            file = _compared(options)
        case _:
            return False
    if (options and file is None) or not pipeline.endswith((".yaml", ".yml")):
        return False
    from orchestration.backends import locks

    text = locks.text(Path(pipeline), "airflow" if backend == "airflow" else "step_functions")
    if text is None or (file is not None and _content(file) != text):
        return False
    if file is None:
        _print(text)
    else:
        print(f"{file} is fresh", file=sys.stderr)
    return True


def _compared(options: Sequence[str]) -> Path | None:
    """Return the file to write or to compare, which are the same where it is fresh."""
    match [option for option in options if option != "--check"]:
        case ["-o" | "--output", name]:
            return Path(name)
    return None


def _content(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has seen enough; Python would say so once more as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
