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
    directory: Path,
    *,
    runtime: bool = False,
    include: Collection[str] = (),
    dependencies: Collection[str] = (),
) -> Iterator[tuple[str, Path]]:
    """Yield the files to send, by POSIX path in the folder, in order; the runtime is optional.

    ``dependencies`` are further folders and files, each under its own name. Raises PipelineError if
    the folder already has what is added to it, and for whatever must not leave this machine unless
    ``include`` names it.
    """
    if not directory.is_dir():
        return
    walk = Walk(directory, frozenset(include))
    paths = dict(walk.files())
    wrong = list(walk.problems)
    for number, dependency in enumerate(dependencies):
        further, refused = _further(Path(dependency), paths, include)
        paths |= further
        wrong += [problem.within(f"dependencies[{number}]") for problem in refused]
    if wrong := [*wrong, *_unknown(include, paths)]:
        raise PipelineError(wrong)
    yield from sorted((paths | _runtime(directory, paths)).items() if runtime else paths.items())


def _further(
    place: Path, own: Iterable[str], include: Iterable[str]
) -> tuple[dict[str, Path], list[Problem]]:
    """Return the files of a dependency, which keeps its name, and what is wrong with it."""
    name = place.name
    if any(path == name or path.startswith(f"{name}/") for path in own):
        return {}, [Problem("", f"the code already holds {name!r}; rename one of them")]
    if place.is_file():
        return {name: place}, []
    if not place.is_dir():
        beside = [each.name for each in place.parent.glob("*")]
        return {}, [Problem("", f"there is no folder or file {place}{near(name, beside)}")]
    inside = frozenset(
        path.removeprefix(f"{name}/") for path in include if path.startswith(f"{name}/")
    )
    walk = Walk(place, inside, prefix=f"{name}/")
    return {f"{name}/{path}": file for path, file in walk.files()}, walk.problems


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


def contents(
    place: Path,
    *,
    runtime: bool = False,
    include: Collection[str] = (),
    dependencies: Collection[str] = (),
) -> list[str]:
    """List the files of a folder or of an archive by their POSIX paths."""
    if place.is_dir():
        found = files(place, runtime=runtime, include=include, dependencies=dependencies)
        return [name for name, _ in found]
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


def digest(
    directory: Path,
    *,
    runtime: bool = False,
    include: Collection[str] = (),
    dependencies: Collection[str] = (),
) -> str:
    """Compute the SHA-256 over the names and contents of the files, in hexadecimal digits.

    The digest of an archive is that of the file itself.
    """
    if not directory.is_dir():
        return hashlib.sha256(directory.read_bytes()).hexdigest()
    whole = hashlib.sha256()
    found = files(directory, runtime=runtime, include=include, dependencies=dependencies)
    for name, path in found:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{name}\0{content}\n".encode())
    return whole.hexdigest()


def archive(
    directory: Path,
    *,
    runtime: bool = False,
    include: Collection[str] = (),
    dependencies: Collection[str] = (),
) -> bytes:
    """Pack ``sourcedir.tar.gz`` for the training toolkit; equal files give equal bytes."""
    if not directory.is_dir():
        return directory.read_bytes()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        found = files(directory, runtime=runtime, include=include, dependencies=dependencies)
        for name, path in found:
            content = path.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            # Modes are no part of the digest; a script of the folder may be started directly.
            entry.mode = 0o755
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)
