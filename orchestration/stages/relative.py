"""Paths that are relative to the Python file which names them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_BETWEEN: Final = ("orchestration", "pydantic")
"""Packages whose functions may stand between the call in a user's file and here."""


def beside_caller(path: str | Path) -> Path:
    """Return a path, relative to the file of the user's code that is running.

    Text that is in no file (a cell of a notebook, a prompt) leaves it relative to the current
    folder. Raises ``ValueError`` where the path leads to no folder.
    """
    place = placed_beside_caller(path)
    if not place.is_dir():
        file = _calling_file()
        origin = "the current folder, as the call is in no file" if file is None else file.name
        told = "" if Path(path).is_absolute() else f", relative to {origin}: {place}"
        raise ValueError(f"there is no folder {path}{told}")
    return place.resolve()


def placed_beside_caller(path: str | Path) -> Path:
    """Return a path as :func:`beside_caller` does, of a folder that may be missing as yet."""
    file = None if Path(path).is_absolute() else _calling_file()
    return (Path.cwd() if file is None else file.parent) / path


def _calling_file() -> Path | None:
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        package, _, _ = frame.f_globals.get("__name__", "").partition(".")
        if package not in _BETWEEN:
            break
    # Where Python runs no file, this is a name such as <stdin>, or one that IPython made up.
    file = Path(frame.f_code.co_filename)
    return file if file.is_file() else None
