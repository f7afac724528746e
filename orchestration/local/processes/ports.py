"""Ports for programs that listen on one that they are told.

The system itself gives a listener a port among those of connections. Until a program listens on
it, a connection may have it, and keep it for a minute after its end: on a busy machine, one program
in a hundred finds its port taken. The ports here are of none, unless this machine's connections are
set to have nearly all ports.
"""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path
from typing import Final

_OF_CONNECTIONS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST: Final = 10_000
_USUAL_END: Final = 32_768
"""The first port of connections on Linux, where nobody has set another one; before other systems'.

https://docs.kernel.org/networking/ip-sysctl.html#ip-local-port-range-2-integers
"""
_FEWEST: Final = 1_000


def free_ports(count: int = 1) -> list[int]:
    """Return ports of the loopback on which nobody listens, and which connections hardly get."""
    chosen = random.SystemRandom()
    with contextlib.ExitStack() as stack:
        # All are bound before any is released, so that no two are the same.
        ports: list[int] = []
        while len(ports) < count:
            probe = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", chosen.randrange(_FIRST, _end())))
                ports.append(int(probe.getsockname()[1]))
        return ports


def _end() -> int:
    try:
        first = int(_OF_CONNECTIONS.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _USUAL_END
    return first if first >= _FIRST + _FEWEST else _USUAL_END
