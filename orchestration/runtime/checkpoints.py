"""Checkpoints that are whole or absent, each a folder with its metrics.

`<directory>/<prefix><number>/` holds what the script writes, `metrics.json` (a flat object that
has the number too) and `manifest.json`, written last: every file with its size. It is filled under
a name that begins with `.tmp-`, which no prefix does, flushed to the disk, then renamed, so a
process killed at any moment leaves no part of one. SageMaker copies the directory to S3 and back
file by file, so part of a checkpoint can arrive there; the manifest tells, and such a part is
passed over.

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

# What is being written, what was replaced, and what is being removed. No prefix begins with a dot.
_NEW = ".tmp-new."
_OLD = ".tmp-old."
_GONE = ".tmp-gone."
_RECEIPTS = ".receipts"
# Names sort by age on S3 too, where they are text.
_DIGITS = 8

Write = Callable[[Path], None]


class Checkpoints:
    """The checkpoints of a run, seen from one of its processes.

    `directory`: SageMaker's checkpoint directory by default. `prefix`: as in
    `CheckpointEvaluation(checkpoint_prefix=...)`. `counts`: what the numbers count, their name in
    `metrics.json` (`epoch`). `rank`: of this process; rank 0 alone writes, names and removes.
    `sha256`: put digests into manifests, which costs reading every file once. `keep_last` and
    `keep_best`: remove the others from this directory after each save (what was copied to S3 may
    stay there).

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
                f"prefix {prefix!r}: not empty, no '/', no '.' in front and no digit at the end"
            )
        if keep_last is not None and keep_last < 1:
            raise ValueError(f"keep_last={keep_last}: at least 1, to have one to go on from")
        if keep_best is not None and keep_last is None:
            raise ValueError("keep_best goes with keep_last: say how many of the newest to keep")
        self.directory = Folders.from_environment().checkpoints if directory is None else directory
        self.prefix = prefix
        self.counts = counts
        self._rank = rank
        self._sha256 = sha256
        self._keep_last = keep_last
        self._keep_best = keep_best

    def whole(self) -> list[Checkpoint]:
        """All whole checkpoints, the oldest first."""
        self._recover()
        return [checkpoint for checkpoint in self._named() if checkpoint.is_whole()]

    def newest(self, *, verify: bool = False) -> Checkpoint | None:
        """The whole checkpoint with the greatest number, to go on from; None to begin anew.

        With several hosts that have a directory each, ask on rank 0 and broadcast: a copy from S3
        need not be equally far everywhere. `verify`: compare digests too.
        """
        self._recover()
        checkpoints = reversed(self._named())
        return next((one for one in checkpoints if one.is_whole(verify=verify)), None)

    def best(self, metric: str, direction: str) -> Checkpoint | None:
        """The whole checkpoint with the greatest (`max`) or least (`min`) value of a metric."""
        return next(iter(Best(metric, direction).of(self.whole())), None)

    def save(
        self, number: int, write: Write, metrics: Mapping[str, float] | None = None
    ) -> Checkpoint | None:
        """Save a checkpoint; does nothing, and gives None, on other ranks than 0.

        `number`: step or epoch. `write` fills the folder that it is given. `metrics`: one that is
        not finite is written as null. An older checkpoint of that number is replaced.
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
        """Save a checkpoint of which every rank writes files of its own; all ranks call this.

        The directory is one that all ranks see: of one host, or FSx. `write` gives its files names
        that no other rank's have. `barrier` returns when all ranks have called it
        (`torch.distributed.barrier`). `metrics`: those of rank 0 count.

        Raises CheckpointError on every rank, and leaves no checkpoint, where a rank wrote nothing
        here; the rank whose `write` failed raises what it raised.
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
            # The others would wait forever for one that failed.
            barrier()
            try:
                if self._rank == 0:
                    self._commit_shards(temporary, number, entries, world_size)
            finally:
                barrier()
        saved = self._checkpoint(self._final(number), number)
        # One that was not committed is still there under its temporary name.
        if temporary.exists() or not saved.is_whole():
            raise CheckpointError(
                f"{saved.path} was not saved: a rank failed, or does not share {self.directory}"
            )
        return saved

    def prune(self) -> list[Path]:
        """Remove what is not to be kept, and parts older than the newest whole checkpoint."""
        whole = self.whole()
        if self._rank != 0 or not whole:
            return []
        keep = set(whole if self._keep_last is None else whole[-self._keep_last :])
        if self._keep_best is not None:
            keep.update(self._keep_best.of(whole))
        older = (one for one in self._named() if one.number < whole[-1].number)
        removed = [one.path for one in older if one not in keep]
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
            raise CheckpointError(f"{' and '.join(taken)}: checkpoints have files of that name")
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
            # No rename replaces a folder that holds files: the old one goes aside first.
            final.rename(old)
        temporary.rename(final)
        files.flush(self.directory)
        shutil.rmtree(old, ignore_errors=True)
        self.prune()
        return self._checkpoint(final, number)

    def _recover(self) -> None:
        """Put back what was moved aside for one that was then not finished."""
        if self._rank != 0:
            return
        for old in self._hidden(_OLD):
            final = self.directory / old.name[len(_OLD) :]
            if final.exists():
                shutil.rmtree(old, ignore_errors=True)
            else:
                old.rename(final)

    def _remove(self, path: Path) -> None:
        """Take a checkpoint's name away before its files, so that no part of it has the name."""
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
        """What is named like a checkpoint, by number, whole or not."""
        if not self.directory.is_dir():
            return []
        ends = (
            (path, path.name[len(self.prefix) :])
            for path in self.directory.iterdir()
            if path.name.startswith(self.prefix) and path.is_dir()
        )
        found = [
            self._checkpoint(path, int(end))
            for path, end in ends
            if end.isascii() and end.isdigit()
        ]
        return sorted(found, key=lambda one: (one.number, one.path.name))

    def _checkpoint(self, path: Path, number: int) -> Checkpoint:
        return Checkpoint(path, number, self.counts)

    def _final(self, number: int) -> Path:
        return self.directory / f"{self.prefix}{number:0{_DIGITS}}"

    def _temporary(self, number: int) -> Path:
        return self.directory / f"{_NEW}{self._final(number).name}"


def _entries(counts: str, number: int, metrics: Mapping[str, float] | None) -> dict[str, Any]:
    if number < 0:
        raise ValueError(f"checkpoint number {number} is less than 0")
    # Whole numbers, of samples or tokens, stay whole.
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
