# Copied from orchestration.runtime 0.1.0: change it there, not here.
"""Who holds a lock, and whether that process still lives."""

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
    """A process, told apart from any that later has its number."""

    pid: int
    host: str
    boot: str
    """The kernel's boot and the process-number space, or empty where there is no /proc."""
    started: str
    """When the process started, in the kernel's ticks since boot, or empty."""
    token: str

    @classmethod
    def current(cls) -> Owner:
        """This process, with a new token."""
        pid = os.getpid()
        return cls(pid, socket.gethostname(), _boot(), _started(pid) or "", uuid.uuid4().hex)

    @classmethod
    def read(cls, value: Any) -> Owner | None:
        """What `record` gave; None for anything else."""
        try:
            return cls(**value)
        except TypeError:
            return None

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def is_gone(self) -> bool:
        """Whether the process has certainly ended.

        A process on another host can't be asked, and counts as living. One of an earlier boot of
        this host, or of an earlier container that had this host's name, has ended.
        """
        if self.host != socket.gethostname():
            return False
        if self.boot != _boot():
            return True
        if not _lives(self.pid):
            return True
        # The number may have been given to another process.
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
    """What follows the command in /proc/PID/stat; the command may hold blanks and brackets."""
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
