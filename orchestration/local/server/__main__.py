"""The process that embedded accounts are forked from: `python -m orchestration.local.server FD`.

Loading moto and botocore's models takes seconds, a fork none. An order is a line of JSON on the
socket FD with the socket of the new account attached; see :mod:`.keeper`. What an account had to
load is loaded here before the next one is forked. This process ends with that of its user.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from typing import Any, NoReturn

from orchestration.local.server import loading, serving
from orchestration.local.server.options import Options

_LONGEST = 65_536


def main(descriptor: int) -> None:
    """Fork an account for each order until the socket ends."""
    signal.signal(signal.SIGCHLD, _reap)
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    orders = socket.socket(fileno=descriptor)
    loading.load([])
    while True:
        order, control = _next(orders)
        if control is None:
            return
        with contextlib.suppress(BlockingIOError):
            for line in os.read(reading, _LONGEST).splitlines():
                loading.load(json.loads(line))
        # What is loaded stays: no account has to look through it for garbage.
        gc.freeze()
        if not os.fork():
            orders.close()
            os.close(reading)
            _serve(order, control, writing)
        control.close()


def _next(orders: socket.socket) -> tuple[dict[str, Any], socket.socket | None]:
    """Return the next order and the socket of its account, None at the end."""
    text, descriptors, _, _ = socket.recv_fds(orders, _LONGEST, 1)
    while text and not text.endswith(b"\n"):
        text += orders.recv(_LONGEST)
    if not text:
        return {}, None
    return json.loads(text), socket.socket(fileno=descriptors[0])


def _serve(order: dict[str, Any], control: socket.socket, writing: int) -> NoReturn:
    """Serve in this forked process, and tell its parent what had to be loaded."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        control.set_inheritable(False)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(log, descriptor)
        os.close(log)
        os.environ.clear()
        os.environ.update(order["environment"])
        tempfile.tempdir = None
        loading.seed()
        used = serving.serve(Options(**order["options"]), control)
        os.write(writing, json.dumps(used).encode() + b"\n")
    except BaseException:  # must not return into the loop of the parent
        traceback.print_exc()
    finally:
        # Executions may still run in their threads; do not wait for them.
        os._exit(0)


def _reap(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue


if __name__ == "__main__":
    main(int(sys.argv[1]))
