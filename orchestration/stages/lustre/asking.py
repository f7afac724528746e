"""The rules of FSx for Lustre for what a new file system is asked to be.

https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final, Literal, TypeAlias

from orchestration.errors import Problem
from orchestration.stages.values import Model, Text

DeploymentType: TypeAlias = Literal["SCRATCH_2", "PERSISTENT_1", "PERSISTENT_2"]
Throughput: TypeAlias = Literal[50, 100, 125, 200, 250, 500, 1000]

_THROUGHPUTS: Final[Mapping[str, tuple[int, ...]]] = {
    "SCRATCH_2": (),
    "PERSISTENT_1": (50, 100, 200),
    "PERSISTENT_2": (125, 250, 500, 1000),
}
_METADATA_IOPS: Final = (1500, 3000, 6000, *range(12_000, 192_001, 12_000))


class LustreLink(Model):
    """A further directory of a file system that is linked with an S3 prefix."""

    path: str
    """The directory, not inside of another linked one: ``/vocabulary``."""
    uri: Text | None = None
    """The S3 prefix, not inside of another linked one either; by default the run's own place in
    the workspace, for results."""
    imports: bool = True
    """Import what the prefix holds; false for a directory that only receives results."""

    @property
    def is_filled(self) -> bool:
        """True if there are objects to import."""
        return self.imports and self.uri is not None


def capacity(gib: int) -> Iterator[Problem]:
    """Yield what FSx refuses of a capacity."""
    if gib != 1200 and gib % 2400:
        message = f"expected 1200 or a multiple of 2400, got {gib}"
        yield Problem("storage_capacity_gib", message)


def throughput(kind: DeploymentType, mbps: int | None) -> Iterator[Problem]:
    """Yield what FSx refuses of a throughput."""
    field, valid = "throughput_mbps_per_tib", _THROUGHPUTS[kind]
    listed = ", ".join(map(str, valid))
    if not valid and mbps is not None:
        yield Problem(field, f"is for PERSISTENT_1 and PERSISTENT_2 only, not {kind}; remove it")
    if valid and mbps is None:
        yield Problem(field, f"is required for {kind}: {listed}")
    if valid and mbps is not None and mbps not in valid:
        yield Problem(field, f"is {mbps}; {kind} takes {listed}")


def metadata(
    kind: DeploymentType, iops: int | Literal["automatic"] | None, *, efa: bool
) -> Iterator[Problem]:
    """Yield what FSx refuses of a metadata configuration, and of EFA, which needs one."""
    if iops is not None and kind != "PERSISTENT_2":
        yield Problem("metadata_iops", f"is for PERSISTENT_2 only, not {kind}; remove it")
    if isinstance(iops, int) and iops not in _METADATA_IOPS:
        yield Problem(
            "metadata_iops",
            f"is {iops}; FSx takes 1500, 3000, 6000, and multiples of 12000 up to 192000, or "
            "automatic",
        )
    if efa and (kind != "PERSISTENT_2" or iops is None):
        yield Problem(
            "efa", "needs deployment_type: PERSISTENT_2 and metadata_iops, for example automatic"
        )


def further(request: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what excludes links with S3."""
    if request.get("StorageType") == "INTELLIGENT_TIERING":
        message = "FSx links no file system of StorageType INTELLIGENT_TIERING with S3"
        yield Problem("extra_request", f"{message}; leave it out, SSD is the default")
    for field in ("ImportPath", "ExportPath", "AutoImportPolicy"):
        if field in request.get("LustreConfiguration", {}):
            message = f"{field} excludes links with S3; use source and links instead"
            yield Problem("extra_request", message)


def links(
    mount_path: str, source: Text | None, further: tuple[LustreLink, ...]
) -> Iterator[Problem]:
    """Yield the links that lie inside of each other, or are no directories."""
    earlier = [LustreLink(path=mount_path, uri="" if source is None else source)]
    for number, link in enumerate(further):
        where = f"links[{number}]"
        if not link.path.startswith("/") or link.path == "/":
            yield Problem(f"{where}.path", f"expected a directory, /name, got {link.path!r}")
        for other in earlier:
            if _overlap(link.path, other.path):
                yield Problem(f"{where}.path", f"{link.path} and {other.path} overlap")
            known = isinstance(link.uri, str) and isinstance(other.uri, str) and other.uri
            if known and _overlap(str(link.uri), str(other.uri)):
                yield Problem(f"{where}.uri", f"{link.uri} and {other.uri} overlap")
        earlier.append(link)


def _overlap(one: str, other: str) -> bool:
    paths = PurePosixPath(one), PurePosixPath(other)
    return paths[0].is_relative_to(paths[1]) or paths[1].is_relative_to(paths[0])
