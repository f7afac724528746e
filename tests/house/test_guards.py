"""The guards around every test do hold."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.patience import PATIENCE_S

_ROOT = Path(__file__).resolve().parent.parent.parent


# 192.0.2.0/24 is set aside for documentation (RFC 5737); 169.254.169.254 hands out credentials.
@pytest.mark.parametrize("host", ["192.0.2.1", "169.254.169.254", "sts.us-east-1.amazonaws.com"])
def test_a_test_cannot_leave_this_machine(host: str) -> None:
    with pytest.raises(RuntimeError, match="tests talk to this machine only"):
        socket.create_connection((host, 443), timeout=1)


def test_a_test_can_talk_to_this_machine() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=5) as client,
    ):
        assert client.getpeername() == server.getsockname()


def test_credentials_are_made_up() -> None:
    assert os.environ["AWS_ACCESS_KEY_ID"] == "testing"
    assert "AWS_PROFILE" not in os.environ


def test_a_process_left_behind_fails_its_test_and_is_ended(tmp_path: Path) -> None:
    test = tmp_path / "test_leaves.py"
    test.write_text(
        "import subprocess, sys, pathlib\n"
        "def test_it():\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"    pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(child.pid))\n"
    )
    options = ["-q", "-W", "ignore", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--rootdir={tmp_path}", str(test)],
        cwd=_ROOT,
        # The child sleeps for a minute, so that any shorter wait finds it.
        env={**os.environ, "ORCHESTRATION_TESTS_GRACE_S": "0"},
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE_S,
    )
    assert "left 1 processes running" in done.stdout, done.stdout + done.stderr
    pid = int((tmp_path / "pid").read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
