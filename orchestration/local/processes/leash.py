"""Run a command, and kill it with all its descendants when its parent dies.

`python -m orchestration.local.processes.leash [--opt-ml DIRECTORY] COMMAND...`: standard input is
the leash: it ends when the embedded AWS dies, for whatever reason. SIGTERM goes to every
descendant, as when a container is stopped; what is left after the command is killed, as when a
container is removed. With `--opt-ml`, the command sees DIRECTORY as `/opt/ml`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from types import FrameType

import psutil

from orchestration.local.processes import opt_ml
from orchestration.local.processes.working_time import WorkingTime

_PR_SET_CHILD_SUBREAPER = 36
_LAST_WORDS_S = 5.0
_POLL_S = 0.1


def main(command: list[str]) -> int:
    """Run the command and return its exit status, 128 + n if signal n ended it."""
    if command[0] == "--opt-ml":
        opt_ml.enter(command[1])
        command = command[2:]
    _adopt_orphans()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    stopped: list[psutil.Process] = []

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.extend(_descendants())
        for process in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()

    signal.signal(signal.SIGTERM, stop)
    threading.Thread(target=_watch, daemon=True).start()
    status = child.wait()
    grace = WorkingTime()
    while stopped and grace.elapsed_s() < _LAST_WORDS_S:
        _, stopped[:] = psutil.wait_procs(stopped, timeout=_POLL_S)
    _kill([*stopped, *_descendants()])
    return 128 - status if status < 0 else status


def _descendants() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def _adopt_orphans() -> None:
    # Linux only; elsewhere a descendant whose parent has ended is missed.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _watch() -> None:
    while os.read(0, 1024):
        pass
    _kill(_descendants())
    os._exit(137)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
