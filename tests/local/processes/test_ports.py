"""Ports that programs are told to listen on."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestration.local.processes.ports import free_ports

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_ports_are_free_and_none_is_that_of_a_connection() -> None:
    ports = free_ports(50)
    assert len(set(ports)) == 50
    if not RANGE.exists() or int(RANGE.read_text().split()[0]) <= max(ports):
        pytest.skip("connections have these ports on this machine")
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for port in ports:
            stack.enter_context(socket.create_server(("127.0.0.1", port)))
        for _ in range(100):
            connection = stack.enter_context(socket.create_connection(listener.getsockname()))
            stack.enter_context(listener.accept()[0])
            assert connection.getsockname()[1] > max(ports)
