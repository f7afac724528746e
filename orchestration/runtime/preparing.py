"""Data that one process of a host prepares while the others wait.

A process that wants the lock creates its own file, then looks for files of others: the later of two
sees the earlier one's file and withdraws, so they never both proceed. Files of dead processes are
ignored.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import time
from pathlib import Path
from typing import Callable, Iterator

from . import files
from .errors import PreparationError, PreparationTimeout
from .processes import Owner

_DONE = ".prepared.json"
_MESSAGE_CHARACTERS = 1000


def prepare_once(
    directory: Path,
    prepare: Callable[[Path], None],
    *,
    fingerprint: str = "",
    timeout_s: float = 3600.0,
    poll_s: float = 0.1,
) -> Path:
    """Have one process fill a directory, and return it in every process that calls this.

    `prepare` fills an empty directory, which is moved to `directory` (on a disk of this host) when
    it returns. A directory left by an earlier run is reused if it was prepared with the same
    `fingerprint` (of the data's version, the settings), else replaced. If the preparing process
    dies, another one starts over. Needs neither torch nor a process group, only a disk that all
    processes share.

    If `prepare` raises, its process raises that error and the waiting ones PreparationError; so do
    all if `directory` holds something else. Raises PreparationTimeout after waiting `timeout_s`
    seconds for others.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as disk:
    ...     def tokenize(folder):
    ...         _ = (folder / "tokens.txt").write_text("1 2 3")
    ...     data = prepare_once(Path(disk) / "tokens", tokenize, fingerprint="v1")
    ...     (data / "tokens.txt").read_text()
    '1 2 3'
    """
    directory = Path(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout_s
    lock = _Lock(directory)
    waited_for: Owner | None = None
    while not _is_prepared(directory, fingerprint):
        holder = lock.acquire()
        if holder is None:
            with lock.held(waited_for):
                if not _is_prepared(directory, fingerprint):
                    _prepare(directory, prepare, fingerprint)
            break
        if waited_for is not None and holder.token != waited_for.token:
            lock.raise_failure(waited_for)
        waited_for = holder
        if time.monotonic() > deadline:
            raise PreparationTimeout(
                f"process {holder.pid} on host {holder.host} has not finished preparing "
                f"{directory} within {timeout_s:g} s; "
                f"if it is no longer running, remove {lock.pattern}"
            )
        # If two withdrew at the same time, one must come back before the other.
        time.sleep(poll_s * random.uniform(0.5, 1.5))  # noqa: S311  # no secret
    return directory


class _Lock:
    def __init__(self, directory: Path) -> None:
        self._folder = directory.parent
        self._prefix = f".{directory.name}.lock."
        self._failure = directory.with_name(f".{directory.name}.failed")
        self._own = Owner.current()
        self._path = self._folder / f"{self._prefix}{self._own.token}"
        self.pattern = self._folder / f"{self._prefix}*"

    def acquire(self) -> Owner | None:
        """Take the lock, or return the living process that holds it."""
        holder = self._holder()
        if holder is None and files.create(self._path, json.dumps(self._own.record())):
            holder = self._holder()
            if holder is not None:
                self._path.unlink()
        return holder

    @contextlib.contextmanager
    def held(self, waited_for: Owner | None) -> Iterator[None]:
        """Release the lock at the end, and leave the reason of a failure for those who wait."""
        try:
            if waited_for is not None:
                self.raise_failure(waited_for)
            yield
        except PreparationError:
            raise
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"[:_MESSAGE_CHARACTERS]
            files.replace(self._failure, json.dumps({"token": self._own.token, "error": text}))
            raise
        finally:
            for path, owner in self._others().items():
                if owner.is_gone():
                    path.unlink()
            self._path.unlink()

    def raise_failure(self, owner: Owner) -> None:
        """Raise the failure that the other process left, if it failed."""
        failure = files.load(self._failure)
        if isinstance(failure, dict) and failure.get("token") == owner.token:
            raise PreparationError(
                f"process {owner.pid} failed to prepare the data: {failure.get('error')}"
            )

    def _holder(self) -> Owner | None:
        return next((other for other in self._others().values() if not other.is_gone()), None)

    def _others(self) -> dict[Path, Owner]:
        paths = [
            path
            for path in self._folder.iterdir()
            if path.name.startswith(self._prefix) and path != self._path
        ]
        owners = {path: Owner.read(files.load(path)) for path in paths}
        return {path: owner for path, owner in owners.items() if owner is not None}


def _is_prepared(directory: Path, fingerprint: str) -> bool:
    done = files.load(directory / _DONE)
    return isinstance(done, dict) and done.get("fingerprint") == fingerprint


def _prepare(directory: Path, prepare: Callable[[Path], None], fingerprint: str) -> None:
    if directory.exists() and not (directory / _DONE).exists() and any(directory.iterdir()):
        raise PreparationError(
            f"{directory} holds files that prepare_once did not write; choose another directory"
        )
    temporary = directory.with_name(f".tmp-{directory.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        prepare(temporary)
        files.write(temporary / _DONE, json.dumps({"fingerprint": fingerprint}) + "\n")
        files.flush_all(temporary)
        old = directory.with_name(f".tmp-{directory.name}-old")
        shutil.rmtree(old, ignore_errors=True)
        if directory.exists():
            directory.rename(old)
        temporary.rename(directory)
        files.flush(directory.parent)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
