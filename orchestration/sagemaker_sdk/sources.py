"""The code of an estimator or a trainer."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from orchestration.errors import PipelineError, Problem
from orchestration.sagemaker_sdk.collected import Copying, collected, copied
from orchestration.sagemaker_sdk.findings import Findings
from orchestration.stages.packing import absent, contents, digest
from orchestration.stages.values import Source

ARCHIVES = (".tar.gz", ".tgz")


def in_s3(entry_point: str, uri: str, path: str, findings: Findings) -> Source | None:
    """Use an archive of code that is in S3 already."""
    if not uri.endswith(ARCHIVES):
        findings.add(path, f"{uri} is not an archive, which the toolkit unpacks; use a .tar.gz")
        return None
    return findings.made(path, lambda: Source(entry_point=entry_point, uri=f"s3://{uri[5:]}"))


def folder(
    entry_point: str,
    directory: str | Path,
    path: str,
    findings: Findings,
    include: Collection[str] = (),
) -> Source | None:
    """Use a folder of code as it is now; ``include`` names files that would be refused."""
    place = Path(directory).resolve()
    if not place.is_dir():
        findings.add(path, f"there is no folder {directory}")
        return None

    def made() -> Source:
        refuse_absent(entry_point, place, str(directory), include)
        return Source(
            entry_point=entry_point,
            directory=str(place),
            include=tuple(include),
            sha256=digest(place, include=include),
        )

    return findings.made(path, made)


def archive(entry_point: str, file: str, path: str, findings: Findings) -> Source | None:
    """Use an archive on this machine, sent unchanged."""
    place = Path(file).resolve()
    if not place.is_file():
        findings.add(path, f"there is no file {file}")
        return None
    return findings.made(
        path, lambda: Source(entry_point=entry_point, archive=str(place), sha256=digest(place))
    )


def put_together(
    script: str,
    directory: str | None,
    dependencies: Sequence[str | os.PathLike[str]],
    copying: Copying,
    findings: Findings,
) -> Source | None:
    """Copy a script and folders into one folder, like the SDK packs them."""
    if directory is not None and not Path(directory).is_dir():
        findings.add("source_dir", f"there is no folder {directory}")
        return None
    entry_point = os.path.basename(script) if directory is None else script
    parts = list(_parts(script, directory, dependencies))
    wrong = [(where, message) for where, part in parts if (message := _unusable(part))]
    for where, message in wrong:
        findings.add(where, message)
    if wrong:
        return None

    def copy(target: Path) -> None:
        for _, part in parts:
            # As the SDK names it: without a name (lib/, .), what it holds.
            inside = target / os.path.basename(part)
            if os.path.isdir(part):
                copied(Path(part), inside)
            else:
                shutil.copyfile(part, inside)
        refuse_absent(entry_point, target, directory or "the code", copying.include)

    path = "dependencies" if dependencies else "entry_point"
    target = collected(copy, copying, path, findings)
    if target is None:
        return None
    return folder(entry_point, target, path, findings, copying.include)


def refuse_absent(entry_point: str, folder: Path, name: str, include: Collection[str]) -> None:
    """Raise PipelineError if a folder, called ``name``, does not hold the script to start."""
    hint = absent(entry_point, contents(folder, include=include))
    if hint is not None:
        raise PipelineError([Problem("", f"{name} holds no {entry_point}{hint}")])


def _parts(
    script: str, directory: str | None, dependencies: Sequence[str | os.PathLike[str]]
) -> Iterator[tuple[str, str]]:
    """Yield what is packed, with the attribute that names it."""
    if directory is None:
        yield "entry_point", script
    else:
        for name in sorted(os.listdir(directory)):
            yield "source_dir", os.path.join(directory, name)
    for part in dependencies:
        yield "dependencies", os.fspath(part)


def _unusable(part: str) -> str | None:
    if os.path.basename(part) == os.pardir:
        return (
            f"{part} is packed by the SDK outside of the archive; name it: {Path(part).resolve()}"
        )
    if os.path.exists(part):
        return None
    if os.path.islink(part):
        return f"{part} is a link to something missing; delete it"
    return f"there is no {part}"
