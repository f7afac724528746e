"""The time that a start takes: work counts as it is, and doing nothing as a scaled pause.

A model that loads for a minute has a minute, as on AWS. A process that waits for something that
never comes does not keep anybody waiting for hours of AWS.
"""

from __future__ import annotations

import contextlib
import ipaddress
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestration.local.processes.working_time import WorkingTime

if TYPE_CHECKING:
    from psutil import Process

_WINDOW_S: Final = 0.5
_BUSY: Final = 0.1
"""The share of a processor above which a process works; answering health checks takes less."""
_AT_WORK: Final = "RD"
"""States of threads that run, want to run, or wait for a disk: proc_pid_stat(5)."""


class StartingTime:
    """Seconds of AWS since a tree of processes was started."""

    def __init__(self, pid: int, scale: float) -> None:
        self._pid = pid
        self._scale = scale
        self._spent_s = 0.0
        self._rested = False
        self._begin(0.0)

    def elapsed_s(self) -> float:
        """Return the seconds so far; like :class:`WorkingTime`, to be read often."""
        work_s, wall_s = self._window.elapsed_s(), self._window.wall_s()
        if wall_s < _WINDOW_S:
            return self._spent_s + work_s
        tree = _tree(self._pid)
        used_s = sum(map(_used_s, tree))
        rests = used_s - self._used_s < _BUSY * wall_s and not any(map(_is_active, tree))
        # The first such window may lie between two pieces of work.
        resting = rests and self._rested and self._scale > 0
        self._spent_s += max(work_s, wall_s / self._scale) if resting else work_s
        self._rested = rests
        self._begin(used_s)
        return self._spent_s

    def _begin(self, used_s: float) -> None:
        self._window = WorkingTime(time.monotonic)
        self._used_s = used_s


def _tree(pid: int) -> list[Process]:
    import psutil

    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _used_s(process: Process) -> float:
    import psutil

    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


def _is_active(process: Process) -> bool:
    """Return whether a process works, or talks to another machine: it may fetch something."""
    import psutil

    try:
        threads = [
            each.read_text().rpartition(")")[2].split()[0]
            for each in Path(f"/proc/{process.pid}/task").glob("*/stat")
        ]
        connections = process.net_connections(kind="inet")
    except (OSError, psutil.Error):
        return True
    # Empty of a socket that only listens.
    peers = (getattr(each.raddr, "ip", "") for each in connections)
    is_remote = any(peer and not ipaddress.ip_address(peer).is_loopback for peer in peers)
    return not threads or is_remote or any(state in _AT_WORK for state in threads)
