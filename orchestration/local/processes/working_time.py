"""The time in which a process could run, on a machine that others use too."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

_LOAD = Path("/proc/loadavg")


class WorkingTime:
    """Counts seconds by the share of a processor that each thread of this machine gets.

    Where six threads want two processors, three seconds count as one. The share is read whenever
    the time is, so whoever waits has to look every now and then.
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
        """Seconds in which a process could run, since this object was made."""
        now = self._clock()
        self._worked_s += (now - self._last) * self._share()
        self._last = now
        return self._worked_s

    def wall_s(self) -> float:
        """Seconds of a clock on the wall, since this object was made."""
        return self._clock() - self._began


def _share() -> float:
    """The share of a processor that each thread gets which wants one now."""
    try:
        running = int(_LOAD.read_text().split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        # Linux only; elsewhere every second counts.
        return 1.0
    # The thread that reads is one of those that run.
    return min(1.0, (os.cpu_count() or 1) / max(1, running - 1))
