"""Time in which a process could run."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from orchestration.local.processes.working_time import WorkingTime


class _Machine:
    """A clock that is moved by hand, and the share of a processor that each thread gets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.share = 1.0


@pytest.fixture
def machine() -> _Machine:
    return _Machine()


@pytest.fixture
def working(machine: _Machine) -> WorkingTime:
    return WorkingTime(lambda: machine.now, lambda: machine.share)


def test_on_a_quiet_machine_it_is_the_time(machine: _Machine, working: WorkingTime) -> None:
    machine.now += 7
    assert working.elapsed_s() == working.wall_s() == 7


def test_on_a_busy_machine_a_second_counts_for_its_share(
    machine: _Machine, working: WorkingTime
) -> None:
    machine.share = 0.25
    machine.now += 8
    assert working.elapsed_s() == 2
    machine.share = 1.0
    machine.now += 1
    assert (working.elapsed_s(), working.wall_s()) == (3, 9)


@pytest.mark.skipif(sys.platform != "linux", reason="the share is read from /proc")
def test_busy_processes_take_their_share() -> None:
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(3 * (os.cpu_count() or 1))
    ]
    try:
        time.sleep(1)
        working = WorkingTime()
        while working.wall_s() < 2:
            time.sleep(0.02)
            working.elapsed_s()
        # A third for each where nothing else runs; less where something does.
        assert working.elapsed_s() < 1
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
