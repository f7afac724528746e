"""Absolute paths, of those that are relative to the Python file which names them too."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

_BETWEEN: Final = ("orchestration", "pydantic")
"""Packages whose functions may stand between the call in a user's file and here."""


def absolute(path: Path) -> Path:
    """Return a path without links on its way; one at its end stays, and with it its name."""
    # pathlib raises for names that are too long.
    if "\0" in str(path):
        return Path(os.path.abspath(path))  # Nothing has this name; the pipeline refuses it.
    return path.parent.resolve() / path.name if os.path.islink(path) else path.resolve()


def beside_caller(path: str | Path) -> Path:
    """Return a path, relative to the file of the user's code that is running.

    Text that is in no file leaves it relative to the current folder. Nothing need be there as yet.
    """
    file = None if Path(path).is_absolute() else calling_file()
    return absolute((Path.cwd() if file is None else file.parent) / path)


def calling_file() -> Path | None:
    """Return the file of the user's code that is running.

    ``None`` for text that is in no file: a cell of a notebook, a prompt.
    """
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        package, _, _ = frame.f_globals.get("__name__", "").partition(".")
        if package not in _BETWEEN:
            break
    # Where Python runs no file, this is a name such as <stdin>, or one that IPython made up.
    file = Path(frame.f_code.co_filename)
    return file.absolute() if file.is_file() else None
