"""The code of an estimator or a trainer."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

from orchestration.sagemaker_sdk.collected import collected
from orchestration.sagemaker_sdk.findings import Findings
from orchestration.stages.packing import digest
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
    if not (place / entry_point).is_file():
        findings.add(path, f"{directory} holds no {entry_point}")
        return None
    return findings.made(
        path,
        lambda: Source(
            entry_point=entry_point,
            directory=str(place),
            include=tuple(include),
            sha256=digest(place, include=include),
        ),
    )


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
    dependencies: Sequence[str],
    into: str | Path | None,
    findings: Findings,
) -> Source | None:
    """Copy a script and folders into one folder, like the SDK packs them."""
    parts = [Path(part).resolve() for part in dependencies]
    if directory is None:
        parts.insert(0, Path(script).resolve())
    elif not Path(directory).is_dir():
        findings.add("source_dir", f"there is no folder {directory}")
        return None
    else:
        parts[:0] = sorted(Path(directory).resolve().iterdir())
    missing = [part for part in parts if not part.exists()]
    for part in missing:
        where = "entry_point" if str(part) == str(Path(script).resolve()) else "dependencies"
        findings.add(where, f"there is no {part}")
    if missing:
        return None

    def copy(target: Path) -> None:
        for part in parts:
            if part.is_dir():
                shutil.copytree(part, target / part.name, dirs_exist_ok=True)
            else:
                shutil.copyfile(part, target / part.name)

    path = "entry_point" if directory is None else "source_dir"
    target = collected(copy, into, path, findings)
    if target is None:
        return None
    entry_point = script if directory is not None else Path(script).name
    return folder(entry_point, target, path, findings)
