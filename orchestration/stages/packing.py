"""Folders of code: their files, their digest, and a reproducible archive.

An archive that is there already stands for its folder, and stays as it is.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import posixpath
import tarfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from orchestration.errors import PipelineError, Problem, near
from orchestration.stages import vendoring
from orchestration.stages.folders import Walk


def files(
    directory: Path, *, runtime: bool = False, include: Collection[str] = ()
) -> Iterator[tuple[str, Path]]:
    """Yield the files to send, by POSIX path in the folder, in order; the runtime is optional.

    Raises PipelineError if the runtime is asked for and the folder already has one of its own, and
    for whatever must not leave this machine unless ``include`` names it.
    """
    if not directory.is_dir():
        return
    walk = Walk(directory, frozenset(include))
    paths = dict(walk.files())
    if wrong := [*walk.problems, *_unknown(include, paths)]:
        raise PipelineError(wrong)
    yield from sorted((paths | _runtime(directory, paths)).items() if runtime else paths.items())


def _unknown(include: Iterable[str], paths: Iterable[str]) -> Iterator[Problem]:
    names = list(paths)
    for name in include:
        if not any(path == name or path.startswith(f"{name}/") for path in names):
            yield Problem("include", f"the folder holds no {name!r}{near(name, names)}")


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


def contents(place: Path, *, runtime: bool = False, include: Collection[str] = ()) -> list[str]:
    """List the files of a folder or of an archive by their POSIX paths."""
    if place.is_dir():
        return [name for name, _ in files(place, runtime=runtime, include=include)]
    try:
        with tarfile.open(place, mode="r:gz") as tar:
            return [entry.name.removeprefix("./") for entry in tar if entry.isfile()]
    except (tarfile.TarError, OSError, EOFError) as error:
        raise PipelineError(
            [Problem("", f"{place.name} can't be read as a .tar.gz: {error}")]
        ) from error


def absent(entry_point: str, names: Iterable[str]) -> str | None:
    """Return the way out if a script is none of these files; ``./train.py`` is ``train.py``."""
    listed = list(names)
    return None if posixpath.normpath(entry_point) in listed else near(entry_point, listed)


def digest(directory: Path, *, runtime: bool = False, include: Collection[str] = ()) -> str:
    """Compute the SHA-256 over the names and contents of the files, in hexadecimal digits.

    The digest of an archive is that of the file itself.
    """
    if not directory.is_dir():
        return hashlib.sha256(directory.read_bytes()).hexdigest()
    whole = hashlib.sha256()
    for name, path in files(directory, runtime=runtime, include=include):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{name}\0{content}\n".encode())
    return whole.hexdigest()


def archive(directory: Path, *, runtime: bool = False, include: Collection[str] = ()) -> bytes:
    """Pack ``sourcedir.tar.gz`` for the training toolkit; equal files give equal bytes."""
    if not directory.is_dir():
        return directory.read_bytes()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in files(directory, runtime=runtime, include=include):
            content = path.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            # Modes are no part of the digest; a script of the folder may be started directly.
            entry.mode = 0o755
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)
