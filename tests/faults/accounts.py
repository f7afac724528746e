"""Embedded accounts with stand-ins for jobs, hundreds of them one after the other."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from orchestration.local import EmbeddedAws, Fault
from orchestration.local.processes.children import remove
from orchestration.local.processes.scratch import Scratch
from tests.faults.cell import Work
from tests.faults.holding import PREFIX
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


class Account(EmbeddedAws):
    """An embedded AWS in a process that the zygote has forked."""

    _port = 0

    @classmethod
    def at(cls, port: int, time_scale: float) -> Account:
        """Return the account that listens on a port."""
        account = cls(time_scale=time_scale)
        account._port = port
        return account

    @property
    def endpoint_url(self) -> str:
        """The loopback address of the AWS APIs."""
        return f"http://127.0.0.1:{self._port}"

    def lay(self, moment: Fault) -> None:
        """Hold back the response to the first call that a fault matches."""
        self._holding("lay", moment.to_json())

    def held(self) -> bool:
        """Wait a moment for that call; return whether it has come."""
        return self._holding("held", {})

    def release(self) -> None:
        """Let the response go."""
        self._holding("release", {})

    def _holding(self, what: str, data: Any) -> bool:
        url = f"{self.endpoint_url}{PREFIX}{what}"
        with urllib.request.urlopen(url, json.dumps(data).encode(), PATIENCE_S) as answer:
            return bool(json.load(answer))


class Zygote:
    """The process from which accounts and direct runs are forked; use it in a `with` block.

    Several threads may.
    """

    def __enter__(self) -> Self:
        self._scratch = Scratch("orchestration-faults-")
        self._directory = self._scratch.path
        with (self._directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.zygote"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                start_new_session=True,
                text=True,
            )
        self._count = itertools.count()
        self._lock = threading.Lock()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        self._process.wait()
        self._scratch.close()

    @contextlib.contextmanager
    def account(self, time_scale: float, work_s: Mapping[Work, float]) -> Iterator[Account]:
        """Provide a new account; `work_s` is how long its jobs run, if longer than a moment."""
        directory = self._directory / str(next(self._count))
        directory.mkdir()
        order = {"directory": str(directory), "time_scale": time_scale, "work_s": dict(work_s)}
        pid = self._fork("account", log=str(directory / "log"), **order)
        try:
            _until((directory / "port").exists, f"see {directory / 'log'}")
            yield Account.at(int((directory / "port").read_text()), time_scale)
        finally:
            os.kill(pid, signal.SIGKILL)
            _until(lambda: not _runs(pid), "the account goes on")
            remove(directory)

    @contextlib.contextmanager
    def direct(self, account: Account, run: Mapping[str, Any]) -> Iterator[int]:
        """Start a direct run in a process of its own and provide its id; kill it at the end."""
        path = self._directory / f"{next(self._count)}.pickle"
        path.write_bytes(pickle.dumps(dict(run)))
        order = {"run": str(path), "port": account._port, "time_scale": account.time_scale}
        pid = self._fork("direct", log=str(path.with_suffix(".log")), **order)
        try:
            yield pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            _until(lambda: not _runs(pid), "the run goes on")

    def remember(self, definition: str) -> None:
        """Parse a state machine once for all accounts."""
        with self._lock:
            self._order(kind="definition", definition=definition)

    def _fork(self, kind: str, **order: Any) -> int:
        assert self._process.stdout is not None
        with self._lock:
            self._order(kind=kind, **order)
            return int(json.loads(self._process.stdout.readline())["pid"])

    def _order(self, **order: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _until(holds: Any, otherwise: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, otherwise
        time.sleep(0.005)
