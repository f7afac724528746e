"""The time in which a process could run, on a machine that is also used by others."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

_LOAD = Path("/proc/loadavg")


class WorkingTime:
    """Seconds, each counted by the share of a processor that a thread gets.

    If six threads compete for two processors, three seconds count as one. The share is sampled when
    the time is read, so a caller that waits must read it often.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        share: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        self._share = share or _share
        self._began = self._last = clock()
        self._worked_s = 0.0

    def elapsed_s(self) -> float:
        """Return the seconds in which a process could run since this object was created."""
        now = self._clock()
        self._worked_s += (now - self._last) * self._share()
        self._last = now
        return self._worked_s

    def wall_s(self) -> float:
        """Return the real seconds since this object was created."""
        return self._clock() - self._began


def _share() -> float:
    """Return the share of a processor that each runnable thread gets now."""
    try:
        running = int(_LOAD.read_text().split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        # Linux only; elsewhere every second counts in full.
        return 1.0
    # The thread that reads the file is itself runnable.
    return min(1.0, (os.cpu_count() or 1) / max(1, running - 1))
