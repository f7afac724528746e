"""Temporary directories that go with their owner, even if it is killed.

An owner holds a lock on a file in its directory. The next one to make a directory removes those
whose locks are free: their owners are gone, and had no time to clean up.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path

from orchestration.local.processes.children import remove

_OWNER = ".owner"


class Scratch:
    """A temporary directory of this process, with a place in it for those of its children."""

    def __init__(self, prefix: str, parent: Path | None = None) -> None:
        if parent is not None:
            parent.mkdir(parents=True, exist_ok=True)
        _sweep(Path(tempfile.gettempdir()) if parent is None else parent, prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        self._lock = _locked(self.path)
        self.temporary = self.path / "tmp"
        """What the children's ``TMPDIR`` is, so that what they leave goes too."""
        self.temporary.mkdir()

    def close(self) -> None:
        """Remove the directory and all that is in it."""
        remove(self.path)
        os.close(self._lock)


def _locked(directory: Path) -> int:
    """Lock the owner's file; it gets its name only then, so that nobody sees it unlocked."""
    unnamed = directory / f"{_OWNER}.new"
    lock = os.open(unnamed, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(directory / _OWNER)
    return lock


def _sweep(parent: Path, prefix: str) -> None:
    for directory in parent.glob(f"{prefix}*"):
        # Not this user's, or gone in the meantime: somebody else cleans up.
        with contextlib.suppress(OSError):
            lock = os.open(directory / _OWNER, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(directory)
            finally:
                os.close(lock)
