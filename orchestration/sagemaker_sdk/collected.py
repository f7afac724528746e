"""Copies of code that is not in one folder, kept until the process ends."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from orchestration.errors import PipelineError, Problem
from orchestration.sagemaker_sdk.findings import Findings
from orchestration.stages.folders import Walk
from orchestration.stages.packing import digest


@dataclass(frozen=True, slots=True)
class Copying:
    """Wishes for a copy of code."""

    into: str | Path | None
    """An empty folder for it, which stays."""
    include: Collection[str] = ()
    """Files to send that would be refused."""


def collected(
    copy: Callable[[Path], object], copying: Copying, path: str, findings: Findings
) -> Path | None:
    """Return a folder that ``copy`` has filled: the one wished, or one that this process removes.

    Equal code is in the same folder of a process, so that two conversions are equal.
    """
    with tempfile.TemporaryDirectory(dir=_place(os.getpid())) as around:
        # Its name stands in messages about its files.
        fresh = Path(around) / "code"
        fresh.mkdir()

        def filled() -> str:
            copy(fresh)
            return digest(fresh, include=copying.include)

        whole = findings.made(path, filled)
        if whole is None:
            return None
        if copying.into is not None:
            return _kept(fresh, Path(copying.into), findings)
        target = _place(os.getpid()) / whole
        if not target.exists():
            fresh.rename(target)
        return target


def copied(
    folder: Path, target: Path, ignore: Callable[[Any, list[str]], set[str]] | None = None
) -> None:
    """Copy a folder; links are followed, as the SDK does."""
    try:
        shutil.copytree(folder, target, dirs_exist_ok=True, ignore=ignore)
    except OSError as error:
        walk = Walk(folder, frozenset(os.listdir(folder)))
        list(walk.files())
        raise PipelineError(walk.problems or [Problem("", f"can't be copied: {error}")]) from error


def _kept(fresh: Path, target: Path, findings: Findings) -> Path | None:
    """Copy to the folder wished, unless an earlier conversion left the same there."""
    if not target.is_dir() or not any(target.iterdir()):
        return Path(shutil.copytree(fresh, target, dirs_exist_ok=True))
    if _files(fresh) == _files(target):
        return target
    findings.add(
        "", f"the folder for its code, code={str(target)!r}, holds other files; give an empty one"
    )
    return None


def _files(folder: Path) -> dict[Path, bytes]:
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


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
