"""Paths of a container, told as paths below a job's own directory.

A job's processes share this machine's file system, so `/opt/ml/...` can't be theirs. Wherever a
request names such a path (hyperparameters, environment, entry point, arguments), the job sees the
path below its own directory instead. It is the one way in which it can tell the simulation. An
isolated host has an `/opt/ml` of its own; there, only paths elsewhere are told otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CONTAINER_ROOT = "/opt/ml"


@dataclass(frozen=True)
class ContainerPaths:
    """Maps a container's paths to a directory: `/opt/ml` itself, and `others` below `root/`."""

    directory: Path
    others: tuple[str, ...] = ()
    root: str = ""
    """What the job's processes call the directory."""

    @classmethod
    def covering(
        cls, directory: Path, paths: Iterable[str], *, isolated: bool = False
    ) -> ContainerPaths:
        """A mapping for `/opt/ml` and for those of `paths` that lie elsewhere."""
        elsewhere = {path.rstrip("/") for path in paths if not _is_below(path, CONTAINER_ROOT)}
        root = CONTAINER_ROOT if isolated else str(directory)
        return cls(directory, tuple(sorted(elsewhere, key=len, reverse=True)), root)

    def local(self, path: str) -> Path:
        """Where a path of the container is here."""
        if _is_below(path, CONTAINER_ROOT):
            return self.directory / path[len(CONTAINER_ROOT) :].strip("/")
        return self.directory / "elsewhere" / path.strip("/")

    def rewrite(self, text: str) -> str:
        """A text with the container's paths replaced."""
        root = self.root or str(self.directory)
        for other in self.others:
            text = text.replace(other, f"{root}/elsewhere/{other.strip('/')}")
        return text.replace(CONTAINER_ROOT + "/", f"{root}/")


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")
