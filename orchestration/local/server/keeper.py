"""The process that embedded accounts are forked from, as its user's process sees it."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from orchestration.errors import LocalError
from orchestration.local.server.options import Options

_STOP_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Server:
    """A process that serves an account."""

    pid: int
    port: int
    _control: socket.socket

    def end(self) -> None:
        """End the process, and return once it has gone."""
        # A fork of this process may hold the socket open, so closing it is not enough.
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        self._control.settimeout(_STOP_TIMEOUT_S)
        try:
            _until_the_end(self._control)
        except TimeoutError:
            os.kill(self.pid, signal.SIGKILL)
            self._control.settimeout(None)
            _until_the_end(self._control)
        self._control.close()


class Keeper:
    """A process that has loaded what accounts need, and forks one in no time.

    It starts with the first account, and ends with this process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: socket.socket | None = None
        self._log: IO[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process; None before the first account."""
        return None if self._process is None else self._process.pid

    def start(self, options: Options, temporary: Path) -> Server:
        """Start a server; raise :class:`LocalError` with its log if it does not start."""
        log = Path(options.directory, "server.log")
        environment = _with_this_package(os.environ) | {"TMPDIR": str(temporary)}
        order = {"options": asdict(options), "environment": environment, "log": str(log)}
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._send(json.dumps(order).encode() + b"\n", theirs)
            with contextlib.suppress(ConnectionError), ours.makefile("rb") as lines:
                if line := lines.readline():
                    ready: dict[str, Any] = json.loads(line)
                    return Server(ready["pid"], ready["port"], ours)
        except BaseException:
            ours.close()
            raise
        ours.close()
        text = self._written() + (log.read_bytes() if log.exists() else b"")
        end = text.decode(errors="replace")[-4000:]
        raise LocalError(f"the embedded AWS did not start; the end of its log:\n{end}")

    def _written(self) -> bytes:
        if self._log is None:
            return b""
        self._log.seek(0)
        return self._log.read()

    def _send(self, order: bytes, attached: socket.socket) -> None:
        with self._lock:
            if self._orders is None or self._process is None or self._process.poll() is not None:
                self.close()
                self._orders = self._begun()
            # One that has just died sends no account, which the caller sees.
            with contextlib.suppress(ConnectionError):
                sent = socket.send_fds(self._orders, [order], [attached.fileno()])
                self._orders.sendall(order[sent:])

    def _begun(self) -> socket.socket:
        orders, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (it stays open)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "orchestration.local.server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env=_with_this_package(os.environ),
                pass_fds=[theirs.fileno()],
                cwd="/",
                # Control-C must reach the user's process only: this one ends when that one does.
                start_new_session=True,
            )
        return orders

    def close(self) -> None:
        """End the process."""
        if self._orders is not None and self._process is not None:
            with contextlib.suppress(OSError):
                self._orders.shutdown(socket.SHUT_RDWR)
            self._orders.close()
            self._process.wait()
        if self._log is not None:
            self._log.close()


def of_this_process() -> Keeper:
    """Return the keeper of this process, which a fork does not share with its parent."""
    return _keeper_of(os.getpid())


@functools.cache
def _keeper_of(pid: int) -> Keeper:
    keeper = Keeper()

    def close() -> None:
        if os.getpid() == pid:
            keeper.close()

    atexit.register(close)
    return keeper


def _until_the_end(control: socket.socket) -> None:
    with contextlib.suppress(ConnectionError):
        while control.recv(1024):
            continue


def _with_this_package(environ: Mapping[str, str]) -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[3])
    path = environ.get("PYTHONPATH")
    return {**environ, "PYTHONPATH": f"{root}{os.pathsep}{path}" if path else root}
