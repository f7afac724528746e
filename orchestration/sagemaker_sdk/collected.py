"""Copies of code that is not in one folder, kept until the process ends."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from orchestration.sagemaker_sdk.findings import Findings
from orchestration.stages.packing import digest


def collected(
    copy: Callable[[Path], object], into: str | Path | None, path: str, findings: Findings
) -> Path | None:
    """Return a folder that ``copy`` has filled: ``into``, or one that this process removes.

    Equal code is in the same folder of a process, so that two conversions are equal.
    """
    if into is not None:
        target = Path(into)
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()):
            findings.add(
                "", f"the folder for its code, code={str(into)!r}, is not empty; give an empty one"
            )
            return None
        copy(target)
        return target
    fresh = Path(tempfile.mkdtemp(dir=_place(os.getpid())))
    copy(fresh)
    whole = findings.made(path, lambda: digest(fresh))
    if whole is None:
        return None
    target = fresh.with_name(whole)
    if target.exists():
        shutil.rmtree(fresh)
    else:
        fresh.rename(target)
    return target


@cache
def _place(process: int) -> Path:
    """Make the folder of this process, and remove it at its end."""
    place = Path(tempfile.mkdtemp(prefix="orchestration-code-"))

    def remove() -> None:
        # A fork of the process ends too, and earlier.
        if os.getpid() == process:
            shutil.rmtree(place, ignore_errors=True)

    atexit.register(remove)
    return place
