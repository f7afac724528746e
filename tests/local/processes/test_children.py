"""Child processes that are stopped while they start, and gone once they are killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

from orchestration.local.processes.children import Children
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[3]
# The moment is that in which the command has been started and its start has not returned.
EARLY = """
import os, signal, subprocess, sys
from orchestration.local.processes import leash

start = subprocess.Popen

def started(*arguments, **more):
    child = start(*arguments, **more)
    print(child.pid, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    return child

subprocess.Popen = started
sys.exit(leash.main([sys.executable, "-c", "import time; time.sleep(600)"]))
"""
FAMILY = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_a_command_ends_that_is_stopped_while_it_starts() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", EARLY], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as leashed:
        assert leashed.stdout is not None
        command = psutil.Process(int(leashed.stdout.readline()))
        try:
            leashed.wait(PATIENCE_S)
            assert not runs(command)
        finally:
            if runs(command):
                command.kill()


def test_a_tree_that_is_killed_has_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", FAMILY]
    environment = {"PYTHONPATH": str(ROOT)}
    for _ in range(10):
        log.unlink(missing_ok=True)
        child = Children().start(command, environment=environment, directory=tmp_path, log=log)
        while not log.exists() or not log.read_text().endswith("\n"):
            assert child.exit_status is None
        tree = [psutil.Process(int(log.read_text())), *psutil.Process(child.pid).children()]
        child.stop(grace_s=0)
        assert not [each for each in tree if runs(each)]
