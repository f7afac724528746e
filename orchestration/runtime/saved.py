"""Checkpoints on the disk: complete ones, and the best by a metric."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Iterable

from . import files

MANIFEST = "manifest.json"
METRICS = "metrics.json"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on the disk."""

    path: Path
    number: int
    """The step or epoch after which it was saved."""
    counts: str = "step"
    """The unit of the number, and its name in `metrics.json`."""

    @property
    def metrics(self) -> dict[str, float]:
        """The finite metrics that it was saved with."""
        values = files.load(self.path / METRICS)
        if not isinstance(values, dict):
            return {}
        return {
            name: float(value)
            for name, value in values.items()
            if name != self.counts and isinstance(value, (int, float)) and math.isfinite(value)
        }

    def is_whole(self, *, verify: bool = False) -> bool:
        """Return whether every file of the manifest exists in its full size.

        `verify`: also compare SHA-256 digests, if the manifest has them.
        """
        manifest = files.load(self.path / MANIFEST)
        try:
            sizes: dict[str, int] = manifest["files"]
            digests: dict[str, str] = manifest.get("sha256", {}) if verify else {}
            return all(
                _is_inside(name) and files.size(self.path / name) == size
                for name, size in sizes.items()
            ) and all(files.sha256(self.path / name) == digests[name] for name in digests)
        except (AttributeError, KeyError, OSError, TypeError):
            return False

    def copy_to(self, folder: Path, *, without: Iterable[str] = ()) -> None:
        """Copy the files to a folder, such as the model's, beside what is there.

        The manifest is not copied, nor are files named in `without`: those that only training
        needs, such as the optimiser's state.
        """
        left = shutil.ignore_patterns(*without)

        def ignored(directory: str, names: list[str]) -> set[str]:
            top = {MANIFEST} if Path(directory) == self.path else set()
            return left(directory, names) | top

        shutil.copytree(str(self.path), str(folder), ignore=ignored, dirs_exist_ok=True)


@dataclass(frozen=True)
class Best:
    """A rule that keeps the best `count` checkpoints by a metric, beside the newest."""

    metric: str
    direction: str
    """`max` or `min`."""
    count: int = 1

    def __post_init__(self) -> None:
        if self.direction not in ("max", "min") or self.count < 1:
            raise ValueError(f"{self}: direction must be 'max' or 'min', and count at least 1")

    def of(self, checkpoints: list[Checkpoint]) -> list[Checkpoint]:
        """List the best first, newer before equal older; those without the metric are left out."""
        sign = 1 if self.direction == "max" else -1
        measured = [(saved.metrics.get(self.metric), saved) for saved in checkpoints]
        ranked = [
            (sign * value, saved.number, saved) for value, saved in measured if value is not None
        ]
        ranked.sort(key=lambda entry: entry[:2], reverse=True)
        return [saved for _value, _number, saved in ranked[: self.count]]


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts
