"""Checkpoints that are whole or absent, under names that sort by age.

A checkpoint is a folder. It is written under a hidden temporary name beside its final place, then
renamed, so a process killed at any moment leaves no half of one. `manifest.json` lists every file
with its size: SageMaker copies the folder to S3 and back file by file, so after an interruption
part of a checkpoint can arrive, and such a part is passed over.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MANIFEST = "manifest.json"
_TEMPORARY = ".tmp-"


@contextmanager
def writing(directory: Path, name: str) -> Iterator[Path]:
    """A folder to fill; when the block ends well it becomes `directory/name`, at once.

    An older checkpoint of that name is replaced.
    """
    directory.mkdir(parents=True, exist_ok=True)
    temporary = directory / f"{_TEMPORARY}{name}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    yield temporary
    sizes = {path: (temporary / path).stat().st_size for path in _files(temporary)}
    (temporary / MANIFEST).write_text(json.dumps({"files": sizes}, indent=2) + "\n")
    for path in (*sizes, MANIFEST):
        _flush(temporary / path)
    final = directory / name
    if final.exists():
        # No rename replaces a folder that holds files: the old one goes aside first.
        aside = directory / f"{_TEMPORARY}old-{name}"
        shutil.rmtree(aside, ignore_errors=True)
        final.rename(aside)
    temporary.rename(final)
    _flush(directory)
    shutil.rmtree(directory / f"{_TEMPORARY}old-{name}", ignore_errors=True)


def newest(directory: Path) -> Path | None:
    """The whole checkpoint with the greatest name, or None."""
    if not directory.is_dir():
        return None
    whole = (path for path in directory.iterdir() if is_whole(path))
    return max(whole, key=lambda path: path.name, default=None)


def is_whole(checkpoint: Path) -> bool:
    """Whether every file that the manifest lists is there in its full size."""
    if checkpoint.name.startswith(_TEMPORARY):
        return False
    try:
        sizes: dict[str, int] = json.loads((checkpoint / MANIFEST).read_text())["files"]
        return all((checkpoint / path).stat().st_size == size for path, size in sizes.items())
    except (OSError, ValueError, KeyError):
        return False


def _files(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
