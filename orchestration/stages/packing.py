"""Folders of code: their files, their digest, and a reproducible archive.

An archive that is there already stands for its folder, and stays as it is.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from orchestration.errors import PipelineError, Problem

_LEFT_OUT = frozenset(["__pycache__", ".git", ".DS_Store", ".ipynb_checkpoints", ".venv"])


def files(directory: Path) -> Iterator[tuple[str, Path]]:
    """The files that travel, by their POSIX path in the folder, in order."""
    for path in sorted(directory.rglob("*"), key=lambda p: p.relative_to(directory).as_posix()):
        relative = path.relative_to(directory)
        if path.is_file() and not _LEFT_OUT & set(relative.parts) and path.suffix != ".pyc":
            yield relative.as_posix(), path


def contents(place: Path) -> list[str]:
    """The files of a folder or of an archive, by their POSIX paths in it."""
    if place.is_dir():
        return [name for name, _ in files(place)]
    try:
        with tarfile.open(place, mode="r:gz") as tar:
            return [entry.name.removeprefix("./") for entry in tar if entry.isfile()]
    except (tarfile.TarError, OSError, EOFError) as error:
        raise PipelineError(
            [Problem("", f"{place.name} can't be read as a .tar.gz: {error}")]
        ) from error


def digest(directory: Path) -> str:
    """SHA-256 over the names and contents of the files, in hexadecimal digits.

    Of an archive it is the digest of the file itself.
    """
    if not directory.is_dir():
        return hashlib.sha256(directory.read_bytes()).hexdigest()
    whole = hashlib.sha256()
    for name, path in files(directory):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{name}\0{content}\n".encode())
    return whole.hexdigest()


def archive(directory: Path) -> bytes:
    """``sourcedir.tar.gz`` as the training toolkit unpacks it; equal files give equal bytes."""
    if not directory.is_dir():
        return directory.read_bytes()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in files(directory):
            content = path.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            # Modes are no part of the digest; a script of the folder may be started directly.
            entry.mode = 0o755
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)
