"""The work that runs in an account now, so that nobody has to poll for its end."""

from __future__ import annotations

import threading

Key = tuple[str, str]
"""The operation that describes a resource, and the resource's name."""


class Activity:
    """The jobs and endpoints whose processes are running."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: set[Key] = set()

    def begin(self, key: Key) -> None:
        """Note that something begins to run."""
        with self._changed:
            self._running.add(key)

    def end(self, key: Key) -> None:
        """Note that something has ended; its description must already say so."""
        with self._changed:
            self._running.discard(key)
            self._changed.notify_all()

    def wait(self, key: Key, timeout_s: float) -> bool:
        """Wait until something has ended, at most for a time; return whether it still runs."""
        with self._changed:
            self._changed.wait_for(lambda: key not in self._running, timeout_s)
            return key in self._running
