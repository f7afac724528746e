"""Folders of code: their files, their digest, and a reproducible archive.

An archive that is there already stands for its folder, and stays as it is.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from orchestration.errors import PipelineError, Problem
from orchestration.stages import vendoring

_LEFT_OUT = frozenset(["__pycache__", ".git", ".DS_Store", ".ipynb_checkpoints", ".venv"])


def files(directory: Path, *, runtime: bool = False) -> Iterator[tuple[str, Path]]:
    """Yield the files to send, by POSIX path in the folder, in order; the runtime is optional.

    Raises PipelineError if the runtime is asked for and the folder already has one of its own.
    """
    paths = dict(_own(directory))
    yield from sorted((paths | _runtime(directory, paths)).items() if runtime else paths.items())


def _runtime(directory: Path, own: Iterable[str]) -> dict[str, Path]:
    # Of a module and a folder with the same name Python would import the folder only.
    clashes = sorted({vendoring.FOLDER, f"{vendoring.FOLDER}.py"} & {n.split("/")[0] for n in own})
    if clashes:
        message = (
            f"{directory} already holds {clashes[0]}, which `runtime: true` adds; delete it there, "
            "or remove `runtime: true` to send it as it is"
        )
        raise PipelineError([Problem("", message)])
    return {f"{vendoring.FOLDER}/{name}": path for name, path in vendoring.modules().items()}


def _own(directory: Path) -> Iterator[tuple[str, Path]]:
    for path in directory.rglob("*"):
        relative = path.relative_to(directory)
        if path.is_file() and not _LEFT_OUT & set(relative.parts) and path.suffix != ".pyc":
            yield relative.as_posix(), path


def contents(place: Path, *, runtime: bool = False) -> list[str]:
    """List the files of a folder or of an archive by their POSIX paths."""
    if place.is_dir():
        return [name for name, _ in files(place, runtime=runtime)]
    try:
        with tarfile.open(place, mode="r:gz") as tar:
            return [entry.name.removeprefix("./") for entry in tar if entry.isfile()]
    except (tarfile.TarError, OSError, EOFError) as error:
        raise PipelineError(
            [Problem("", f"{place.name} can't be read as a .tar.gz: {error}")]
        ) from error


def digest(directory: Path, *, runtime: bool = False) -> str:
    """Compute the SHA-256 over the names and contents of the files, in hexadecimal digits.

    The digest of an archive is that of the file itself.
    """
    if not directory.is_dir():
        return hashlib.sha256(directory.read_bytes()).hexdigest()
    whole = hashlib.sha256()
    for name, path in files(directory, runtime=runtime):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{name}\0{content}\n".encode())
    return whole.hexdigest()


def archive(directory: Path, *, runtime: bool = False) -> bytes:
    """Pack ``sourcedir.tar.gz`` for the training toolkit; equal files give equal bytes."""
    if not directory.is_dir():
        return directory.read_bytes()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in files(directory, runtime=runtime):
            content = path.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            # Modes are no part of the digest; a script of the folder may be started directly.
            entry.mode = 0o755
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)
