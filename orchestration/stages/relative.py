"""Paths that are relative to the Python file which names them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_BETWEEN: Final = ("orchestration", "pydantic")
"""Packages whose functions may stand between the call in a user's file and here."""


def beside_caller(path: str | Path) -> Path:
    """Return a path, relative to the file of the user's code that is running.

    Text that is in no file leaves it relative to the current folder. Nothing need be there as yet.
    """
    file = None if Path(path).is_absolute() else calling_file()
    return ((Path.cwd() if file is None else file.parent) / path).resolve()


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
