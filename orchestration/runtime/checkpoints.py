"""Checkpoints that are complete or absent, each a folder with its metrics.

`<directory>/<prefix><number>/` holds the script's files, `metrics.json` (a flat object that
includes the number) and `manifest.json`, written last: every file with its size. The folder is
filled under a name that begins with `.tmp-`, which no prefix does, flushed to the disk, then
renamed, so a process killed at any moment leaves no partial checkpoint. SageMaker copies the
directory to S3 and back file by file, so a partial checkpoint can arrive from there; the manifest
shows that it is partial, and it is skipped.

https://docs.aws.amazon.com/sagemaker/latest/dg/model-checkpoints.html
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping

from . import files
from .errors import CheckpointError
from .folders import Folders
from .saved import MANIFEST, METRICS, Best, Checkpoint

# Names of folders being written, replaced, and removed. No prefix begins with a dot.
_NEW = ".tmp-new."
_OLD = ".tmp-old."
_GONE = ".tmp-gone."
_RECEIPTS = ".receipts"
# Padded, so that names sort by age on S3 too, where they are text.
_DIGITS = 8

Write = Callable[[Path], None]


class Checkpoints:
    """The checkpoints of a run, seen from one of its processes.

    `directory`: SageMaker's checkpoint directory by default. `prefix`: as in
    `CheckpointEvaluation(checkpoint_prefix=...)`. `counts`: the unit of the numbers, and their name
    in `metrics.json` (`epoch`). `rank`: of this process; only rank 0 writes, renames and removes.
    `sha256`: put digests into manifests, which costs reading every file once. `keep_last` and
    `keep_best`: remove the others from this directory after each save (copies on S3 may stay
    there).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as disk:
    ...     checkpoints = Checkpoints(Path(disk), prefix="step-", keep_last=2)
    ...     for step in (10, 20, 30):
    ...         def write(folder):
    ...             _ = (folder / "weights").write_text(str(step))
    ...         saved = checkpoints.save(step, write, {"loss": 1 / step})
    ...     newest = checkpoints.newest()
    ...     newest.path.name, newest.number, (newest.path / "weights").read_text()
    ('step-00000030', 30, '30')
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        prefix: str = "checkpoint-",
        counts: str = "step",
        rank: int = 0,
        sha256: bool = False,
        keep_last: int | None = None,
        keep_best: Best | None = None,
    ) -> None:
        if not prefix or prefix.startswith(".") or "/" in prefix or prefix[-1].isdigit():
            raise ValueError(
                f"prefix {prefix!r}: must not be empty, hold '/', begin with '.' or end in a digit"
            )
        if keep_last is not None and keep_last < 1:
            raise ValueError(
                f"keep_last={keep_last} must be at least 1, to have one to resume from"
            )
        if keep_best is not None and keep_last is None:
            raise ValueError("keep_best needs keep_last, the number of newest checkpoints to keep")
        self.directory = Folders.from_environment().checkpoints if directory is None else directory
        self.prefix = prefix
        self.counts = counts
        self._rank = rank
        self._sha256 = sha256
        self._keep_last = keep_last
        self._keep_best = keep_best

    def whole(self) -> list[Checkpoint]:
        """List all complete checkpoints, the oldest first."""
        self._recover()
        return [checkpoint for checkpoint in self._named() if checkpoint.is_whole()]

    def newest(self, *, verify: bool = False) -> Checkpoint | None:
        """Return the complete checkpoint with the greatest number, to resume from, or None.

        If each host has its own directory, call this on rank 0 and broadcast: copies from S3 may
        have got further on one host than on another. `verify`: compare digests too.
        """
        self._recover()
        checkpoints = reversed(self._named())
        return next((saved for saved in checkpoints if saved.is_whole(verify=verify)), None)

    def best(self, metric: str, direction: str) -> Checkpoint | None:
        """Return the complete checkpoint with the greatest (`max`) or least (`min`) metric."""
        return next(iter(Best(metric, direction).of(self.whole())), None)

    def save(
        self, number: int, write: Write, metrics: Mapping[str, float] | None = None
    ) -> Checkpoint | None:
        """Save a checkpoint on rank 0; do nothing and return None on other ranks.

        `number`: step or epoch. `write` fills the folder passed to it. `metrics`: values that are
        not finite are written as null. An older checkpoint of that number is replaced.
        """
        entries = _entries(self.counts, number, metrics)
        if self._rank != 0:
            return None
        temporary = self._temporary(number)
        self._begin(temporary)
        write(temporary)
        return self._commit(temporary, number, entries)

    def save_sharded(
        self,
        number: int,
        write: Write,
        barrier: Callable[[], None],
        *,
        world_size: int,
        metrics: Mapping[str, float] | None = None,
    ) -> Checkpoint:
        """Save a checkpoint to which every rank contributes files; all ranks call this.

        All ranks must share the directory: they run on one host, or it is on FSx. `write` must use
        file names that no other rank uses. `barrier` returns when all ranks have called it
        (`torch.distributed.barrier`). `metrics`: only those of rank 0 are saved.

        If a rank did not write here, raises CheckpointError on every rank and leaves no checkpoint;
        a rank whose `write` failed raises that error.
        """
        entries = _entries(self.counts, number, metrics)
        temporary = self._temporary(number)
        receipts = temporary / _RECEIPTS
        if self._rank == 0:
            self._begin(temporary)
            receipts.mkdir()
        barrier()
        try:
            write(temporary)
            files.flush_all(temporary)
            files.write(receipts / str(self._rank), "")
        finally:
            # Otherwise the others would wait forever for a rank that failed.
            barrier()
            try:
                if self._rank == 0:
                    self._commit_shards(temporary, number, entries, world_size)
            finally:
                barrier()
        saved = self._checkpoint(self._final(number), number)
        # A checkpoint that was not committed still has its temporary name.
        if temporary.exists() or not saved.is_whole():
            raise CheckpointError(
                f"{saved.path} was not saved: a rank failed, or does not share {self.directory}"
            )
        return saved

    def prune(self) -> list[Path]:
        """Remove checkpoints not kept, and partial ones older than the newest complete one."""
        whole = self.whole()
        if self._rank != 0 or not whole:
            return []
        keep = set(whole if self._keep_last is None else whole[-self._keep_last :])
        if self._keep_best is not None:
            keep.update(self._keep_best.of(whole))
        older = (saved for saved in self._named() if saved.number < whole[-1].number)
        removed = [saved.path for saved in older if saved not in keep]
        for path in removed:
            self._remove(path)
        return removed

    def _commit_shards(
        self, temporary: Path, number: int, entries: dict[str, Any], world_size: int
    ) -> None:
        receipts = temporary / _RECEIPTS
        if all((receipts / str(rank)).exists() for rank in range(world_size)):
            shutil.rmtree(receipts)
            self._commit(temporary, number, entries)

    def _begin(self, temporary: Path) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._recover()
        for left in (*self._hidden(_NEW), *self._hidden(_GONE)):
            shutil.rmtree(left, ignore_errors=True)
        temporary.mkdir()

    def _commit(self, temporary: Path, number: int, entries: dict[str, Any]) -> Checkpoint:
        taken = [name for name in (MANIFEST, METRICS) if (temporary / name).exists()]
        if taken:
            raise CheckpointError(f"the names {' and '.join(taken)} are reserved in checkpoints")
        files.write(temporary / METRICS, json.dumps(entries, indent=2) + "\n")
        names = files.files_below(temporary)
        manifest: dict[str, Any] = {"files": {name: files.size(temporary / name) for name in names}}
        if self._sha256:
            manifest["sha256"] = {name: files.sha256(temporary / name) for name in names}
        files.flush_all(temporary)
        files.write(temporary / MANIFEST, json.dumps(manifest, indent=2) + "\n")
        files.flush(temporary)
        final = self._final(number)
        old = self.directory / f"{_OLD}{final.name}"
        if final.exists():
            # Renaming cannot replace a folder that holds files: move the old one aside first.
            final.rename(old)
        temporary.rename(final)
        files.flush(self.directory)
        shutil.rmtree(old, ignore_errors=True)
        self.prune()
        return self._checkpoint(final, number)

    def _recover(self) -> None:
        """Restore checkpoints that were moved aside for one that was never finished."""
        if self._rank != 0:
            return
        for old in self._hidden(_OLD):
            final = self.directory / old.name[len(_OLD) :]
            if final.exists():
                shutil.rmtree(old, ignore_errors=True)
            else:
                old.rename(final)

    def _remove(self, path: Path) -> None:
        """Remove a checkpoint, renaming it first so that no partial one keeps its name."""
        aside = self.directory / f"{_GONE}{path.name}"
        shutil.rmtree(aside, ignore_errors=True)
        if path.exists():
            path.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)

    def _hidden(self, mark: str) -> Iterator[Path]:
        if self.directory.is_dir():
            for path in list(self.directory.iterdir()):
                if path.name.startswith(f"{mark}{self.prefix}"):
                    yield path

    def _named(self) -> list[Checkpoint]:
        """List folders named like checkpoints, by number, complete or not."""
        if not self.directory.is_dir():
            return []
        ends = (
            (path, path.name[len(self.prefix) :])
            for path in self.directory.iterdir()
            if path.name.startswith(self.prefix) and path.is_dir()
        )
        named = [
            self._checkpoint(path, int(end))
            for path, end in ends
            if end.isascii() and end.isdigit()
        ]
        return sorted(named, key=lambda saved: (saved.number, saved.path.name))

    def _checkpoint(self, path: Path, number: int) -> Checkpoint:
        return Checkpoint(path, number, self.counts)

    def _final(self, number: int) -> Path:
        return self.directory / f"{self.prefix}{number:0{_DIGITS}}"

    def _temporary(self, number: int) -> Path:
        return self.directory / f"{_NEW}{self._final(number).name}"


def _entries(counts: str, number: int, metrics: Mapping[str, float] | None) -> dict[str, Any]:
    if number < 0:
        raise ValueError(f"checkpoint number {number} is less than 0")
    # Integers, such as counts of samples or tokens, stay integers.
    values = {
        name: value if type(value) is int else float(value)
        for name, value in (metrics or {}).items()
    }
    if values.get(counts, number) != number:
        raise ValueError(
            f"{counts!r} is the checkpoint's number, {number}, and can't be {values[counts]} too"
        )
    values.pop(counts, None)
    finite = {name: value if math.isfinite(value) else None for name, value in values.items()}
    return {counts: number, **finite}
