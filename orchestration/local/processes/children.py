"""Child processes that can't outlive the embedded AWS."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.local.processes.working_time import WorkingTime

if TYPE_CHECKING:
    import psutil

# Time in which a process could run: long enough for a script's SIGTERM handler in a test, short for
# a person who waits. (SageMaker gives a stopped job 120 seconds.)
GRACE_S = 5.0
_POLL_S = 0.1
_LOOK_S = 0.005
# What waits for a disk is killed only then.
_KILLED_WITHIN_S = 60.0
_END_BYTES = 65_536
_REMOVALS = 20
_REMOVE_AGAIN_S = 0.05


class ChildProcess:
    """A process in a session of its own, with everything that it starts.

    It runs under `orchestration.local.processes.leash`, which kills the whole tree when this
    process dies without a word. It sees the directory `opt_ml`, if any, as `/opt/ml`.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path,
        log: Path,
        opt_ml: Path | None = None,
    ) -> None:
        self._log = log.open("ab")
        options = ["--opt-ml", str(opt_ml)] if opt_ml else []
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "orchestration.local.processes.leash", *options, *command],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The id of the process that leads the tree."""
        return self._popen.pid

    @property
    def exit_status(self) -> int | None:
        """The exit status, or None while the process runs."""
        return self._popen.poll()

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the exit status; return None if the process still runs after the time-out."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, grace_s: float = GRACE_S) -> None:
        """End the process and all its descendants: SIGTERM, then SIGKILL after a grace time."""
        if self._popen.poll() is None:
            # The leash passes SIGTERM on to everything below it.
            with contextlib.suppress(ProcessLookupError):
                self._popen.send_signal(signal.SIGTERM)
            grace = WorkingTime()
            while grace.elapsed_s() < grace_s and self.wait(_POLL_S) is None:
                continue
            if self._popen.poll() is None:
                kill_tree(self._popen.pid)
                self._popen.wait()
        self._close()

    def _close(self) -> None:
        if self._popen.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._popen.stdin.close()
        self._log.close()


def kill_tree(pid: int) -> None:
    """Kill a process and all its descendants, whatever sessions they made for themselves.

    Returns once none of them runs: their files can be removed then.
    """
    import psutil

    try:
        root = psutil.Process(pid)
        tree = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for process in tree:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    last = time.monotonic() + _KILLED_WITHIN_S
    while any(map(_runs, tree)) and time.monotonic() < last:
        time.sleep(_LOOK_S)


def _runs(process: psutil.Process) -> bool:
    """Return whether a process has not ended; one that nobody waits for has, too."""
    import psutil

    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def remove(directory: Path) -> None:
    """Remove a directory, even if a dying process still writes into it."""
    for _ in range(_REMOVALS):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        time.sleep(_REMOVE_AGAIN_S)


class Children:
    """All child processes of an embedded AWS."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[ChildProcess] = set()
        self._closed = False

    def start(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path,
        log: Path,
        opt_ml: Path | None = None,
    ) -> ChildProcess:
        """Start a process; raise `RuntimeError` once the embedded AWS shuts down."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the embedded AWS is shutting down")
            child = ChildProcess(
                command, environment=environment, directory=directory, log=log, opt_ml=opt_ml
            )
            self._running = {other for other in self._running if other.exit_status is None}
            self._running.add(child)
            return child

    def close(self) -> None:
        """End all processes, at once."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for child in running:
            child.stop(grace_s=0)


def read_log(path: Path) -> str:
    """Read a log file; empty before the process has written anything, or once it is removed."""
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def read_end(path: Path) -> str:
    """Read the last lines of a log file, however long it is."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _END_BYTES))
            return log.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
