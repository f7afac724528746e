"""The mapping of a container's paths to a job's own directory.

Not every system can give a job's processes an `/opt/ml` of their own. Wherever a request names
such a path (hyperparameters, environment, entry point, arguments), the job gets a path below its
own directory instead. An isolated host (:mod:`.isolation`) always has its own `/opt/ml`; there,
only paths elsewhere are replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CONTAINER_ROOT = "/opt/ml"


@dataclass(frozen=True)
class ContainerPaths:
    """A mapping of a container's paths to a directory: `/opt/ml`, and `others` below it."""

    directory: Path
    others: tuple[str, ...] = ()
    root: str = ""
    """The path of the directory as the job's processes see it."""

    @classmethod
    def covering(
        cls, directory: Path, paths: Iterable[str], *, isolated: bool = False
    ) -> ContainerPaths:
        """Return a mapping for `/opt/ml` and for those of `paths` that lie elsewhere."""
        elsewhere = {path.rstrip("/") for path in paths if not _is_below(path, CONTAINER_ROOT)}
        root = CONTAINER_ROOT if isolated else str(directory)
        return cls(directory, tuple(sorted(elsewhere, key=len, reverse=True)), root)

    def local(self, path: str) -> Path:
        """Return the path on this machine of a path in the container."""
        if _is_below(path, CONTAINER_ROOT):
            return self.directory / path[len(CONTAINER_ROOT) :].strip("/")
        return self.directory / "elsewhere" / path.strip("/")

    def rewrite(self, text: str) -> str:
        """Replace the container's paths in a text."""
        root = self.root or str(self.directory)
        for other in self.others:
            text = text.replace(other, f"{root}/elsewhere/{other.strip('/')}")
        return text.replace(CONTAINER_ROOT + "/", f"{root}/")


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")
