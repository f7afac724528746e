"""The holder of a lock, and a check whether that process is still alive."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_PROC = Path("/proc")


@dataclass(frozen=True)
class Owner:
    """A process, distinguishable from later ones with the same number."""

    pid: int
    host: str
    boot: str
    """The kernel's boot and the process-number space, or empty without /proc."""
    started: str
    """When the process started, in the kernel's ticks since boot, or empty."""
    token: str

    @classmethod
    def current(cls) -> Owner:
        """Describe this process, with a new token."""
        pid = os.getpid()
        return cls(pid, socket.gethostname(), _boot(), _started(pid) or "", uuid.uuid4().hex)

    @classmethod
    def read(cls, value: Any) -> Owner | None:
        """Read what `record` returned; None for anything else."""
        try:
            return cls(**value)
        except TypeError:
            return None

    def record(self) -> dict[str, Any]:
        """Return the owner as JSON."""
        return asdict(self)

    def is_gone(self) -> bool:
        """Return whether the process has certainly ended.

        A process on another host cannot be checked and counts as alive. One from an earlier boot of
        this host, or from an earlier container with the same host name, has ended.
        """
        if self.host != socket.gethostname():
            return False
        if self.boot != _boot():
            return True
        if not _lives(self.pid):
            return True
        # Another process may have the number by now.
        return bool(self.started) and _started(self.pid) != self.started


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _state(pid) != "Z"


def _boot() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.stat(str(_PROC / 'self/ns/pid')).st_ino}"
    except OSError:
        return ""


def _fields(pid: int) -> list[str] | None:
    """Read the fields after the command in /proc/PID/stat; it may hold blanks and brackets."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _state(pid: int) -> str | None:
    fields = _fields(pid)
    return fields[0] if fields else None


def _started(pid: int) -> str | None:
    # Field 22 of the line, counted from 1; the state is field 3.
    fields = _fields(pid)
    return fields[19] if fields else None
