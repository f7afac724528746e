"""The network of a job's isolated hosts, and their way to the embedded AWS.

`python -P isolated_network.py SETTINGS`, started by :mod:`.isolation` beside the hosts. It links
the hosts' network namespaces with each other and with nothing else: the first host's `eth0` is a
bridge, the others' are cables to it. Then it listens at the embedded AWS's address inside of each
host and passes on what comes. The machine's own network is not touched, and all is gone when the
hosts end. SETTINGS is a JSON object:

- `pid_files`: one per host, with the number of a process in its network namespace;
- `addresses`: one per host; `port`: of the embedded AWS on 127.0.0.1; `ready`: the file to write.

Only the standard library.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_CLONE_NEWNET = 0x40000000
_HOSTS_S = 600.0
_POLL_S = 0.02
_CHUNK_BYTES = 1 << 16


def main(settings: Mapping[str, Any]) -> None:
    """Set up the network and serve it until the end."""
    pids = [_process(Path(file)) for file in settings["pid_files"]]
    _link(pids, settings["addresses"])
    listeners = [_listener(pid, settings["port"]) for pid in pids]
    Path(settings["ready"]).touch()
    asyncio.run(_serve(listeners, settings["port"]))


def _process(file: Path) -> int:
    """Wait for the process to be in its own network namespace and return its id."""
    own = os.stat("/proc/self/ns/net").st_ino
    end = time.monotonic() + _HOSTS_S
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError):
            pid = int(file.read_text())
            if os.stat(f"/proc/{pid}/ns/net").st_ino != own:
                return pid
        time.sleep(_POLL_S)
    sys.exit(f"the host of {file} did not start within {_HOSTS_S:g} s")


def _link(pids: Sequence[int], addresses: Sequence[str]) -> None:
    first = pids[0]
    _ip(first, "link add eth0 type bridge")
    for number, pid in enumerate(pids[1:], start=2):
        _ip(first, f"link add port{number} type veth peer name eth0 netns {pid}")
        _ip(first, f"link set port{number} master eth0 up")
    for pid, address in zip(pids, addresses, strict=True):
        _ip(pid, "link set lo up")
        _ip(pid, f"address add {address}/16 dev eth0")
        _ip(pid, "link set eth0 up")


def _ip(pid: int, words: str) -> None:
    # Names of programs as root's PATH has them.
    command = ["nsenter", f"--net=/proc/{pid}/ns/net", "ip", *words.split()]
    subprocess.run(command, check=True)


def _listener(pid: int, port: int) -> socket.socket:
    """Return a socket inside a host, at the address of the embedded AWS outside."""
    with open("/proc/self/ns/net") as home, open(f"/proc/{pid}/ns/net") as there:
        _enter(there.fileno())
        try:
            listener = socket.create_server(("127.0.0.1", port), backlog=128)
        finally:
            _enter(home.fileno())
    return listener


def _enter(namespace: int) -> None:
    # os.setns came with Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "can't enter a network namespace")


async def _serve(listeners: Sequence[socket.socket], port: int) -> None:
    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_pass_on(reader, there_writer), _pass_on(there_reader, writer))
        for end in (writer, there_writer):
            end.close()

    servers = [await asyncio.start_server(connect, sock=listener) for listener in listeners]
    await asyncio.gather(*(server.serve_forever() for server in servers))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
