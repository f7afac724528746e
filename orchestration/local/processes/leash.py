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
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from orchestration.local.processes import opt_ml
from orchestration.local.processes.working_time import WorkingTime

if TYPE_CHECKING:
    import psutil

_PR_SET_CHILD_SUBREAPER = 36
_LAST_WORDS_S = 5.0
_POLL_S = 0.1
_STOPPED = 128 + signal.SIGTERM


def main(command: list[str]) -> int:
    """Run the command and return its exit status, 128 + n if signal n ended it."""
    if command[0] == "--opt-ml":
        opt_ml.enter(command[1])
        command = command[2:]
    _adopt_orphans()
    stopped: list[psutil.Process] = []
    running: list[subprocess.Popen[bytes]] = []

    def stop(_number: int, _frame: FrameType | None) -> None:
        import psutil

        stopped.extend(_descendants())
        if not (stopped or running):
            # Nothing runs yet, and nothing is to.
            sys.exit(_STOPPED)
        for process in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()

    # Before the command: a signal that comes while it is started must end it, too.
    signal.signal(signal.SIGTERM, stop)
    running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
    threading.Thread(target=_watch, daemon=True).start()
    status = running[0].wait()
    _await(stopped)
    _kill([*stopped, *_descendants()])
    return 128 - status if status < 0 else status


def _await(stopped: list[psutil.Process]) -> None:
    """Let what was told to stop have its last words."""
    grace = WorkingTime()
    while stopped and grace.elapsed_s() < _LAST_WORDS_S:
        import psutil

        _, stopped[:] = psutil.wait_procs(stopped, timeout=_POLL_S)


def _descendants() -> list[psutil.Process]:
    if _is_alone():
        return []
    import psutil

    return psutil.Process().children(recursive=True)


def _is_alone() -> bool:
    """Return whether this process has no children, as Linux says without a tenth of a second.

    It is the end of most jobs, and the only need that a leash has of psutil.
    """
    try:
        tasks = list(Path("/proc/self/task").iterdir())
        return not any((task / "children").read_bytes() for task in tasks)
    except OSError:  # another system, or a thread that has just ended
        return False


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        import psutil

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
