"""Synchronisation of a host's checkpoint directory with S3 while a job runs."""

from __future__ import annotations

from pathlib import Path

from orchestration.local.account import storage
from orchestration.local.account.storage import Caller, Location

_Mark = tuple[int, int]


class CheckpointSync:
    """A directory whose changed files are uploaded, each only once it is complete."""

    def __init__(self, directory: Path, uri: str, caller: Caller) -> None:
        self._directory = directory
        self._prefix = Location.parse(uri, caller)
        self._uploaded: dict[Path, _Mark] = {}
        self._seen: dict[Path, _Mark] = {}
        self.newest: str | None = None
        """The checkpoint, a file or a folder of the directory, that was uploaded last."""

    def restore(self) -> int:
        """Download the checkpoints of an earlier job and return the number of files."""
        self._directory.mkdir(parents=True, exist_ok=True)
        directory = self._prefix.at(self._prefix.key.rstrip("/") + "/")
        count = storage.download(directory, self._directory)
        self._uploaded = {path: _mark(path) for path in storage.files(self._directory)}
        return count

    def upload(self, *, final: bool = False) -> None:
        """Upload changed files; one that may still be being written waits for the next call.

        With `final`, nobody writes any more, so every changed file is complete.
        """
        for path in storage.files(self._directory):
            try:
                mark = _mark(path)
                if self._uploaded.get(path) != mark and (final or self._seen.get(path) == mark):
                    relative = path.relative_to(self._directory)
                    storage.write(self._prefix.child(relative.as_posix()), path.read_bytes())
                    self._uploaded[path] = mark
                    self.newest = relative.parts[0]
                self._seen[path] = mark
            except FileNotFoundError:
                # Renamed or deleted in the meantime.
                continue


def _mark(path: Path) -> _Mark:
    status = path.stat()
    return (status.st_size, status.st_mtime_ns)
