"""Processes that end with this one."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket

import psutil

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of each descendant whose own parent dies, so that none is lost."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(process: psutil.Process | None = None) -> list[psutil.Process]:
    """Return every process below one, by default below this one."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return (process or psutil.Process()).children(recursive=True)
    return []


def kill(*processes: psutil.Process) -> None:
    """End processes at once, as a lost machine does."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)


def end_all() -> int:
    """End every descendant, and return how many there were."""
    ended = 0
    while processes := [p for p in descendants() if _is_alive(p)]:
        ended += len(processes)
        kill(*processes)
        psutil.wait_procs(processes, timeout=10)
        reap()
    return ended


def reap() -> None:
    """Forget the orphans that have ended."""
    for process in descendants():
        with contextlib.suppress(psutil.NoSuchProcess, ChildProcessError):
            if process.status() == psutil.STATUS_ZOMBIE and process.ppid() == os.getpid():
                os.waitpid(process.pid, os.WNOHANG)


def end_orphans(*titles: str) -> None:
    """End processes that have lost their parent, where their title has one of some texts."""
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            name = " ".join(process.cmdline())
            if any(title in name for title in titles):
                kill(process)


def owner(port: int) -> psutil.Process | None:
    """Return the descendant that calls from a port of the loopback."""
    for process in descendants():
        with contextlib.suppress(psutil.Error):
            for connection in process.net_connections("tcp"):
                if connection.status == psutil.CONN_ESTABLISHED and connection.laddr.port == port:
                    return process
    return None


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _is_alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False
