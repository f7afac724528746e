"""One process prepares, the others wait: really several processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestration.runtime import PreparationError, PreparationTimeout, prepare_once
from orchestration.runtime.processes import Owner
from orchestration.stages.vendoring import vendor
from tests.patience import PATIENCE_S

SCRIPT = """
import os, sys, time
from pathlib import Path
from orchestration_runtime import prepare_once

directory, fingerprint, seconds, how = Path(sys.argv[1]), *sys.argv[2:]

def note(word):
    with (directory.parent / "log").open("a") as log:
        log.write(f"{word} {os.getpid()}\\n")

def prepare(folder):
    note("begin")
    time.sleep(float(seconds))
    if how == "fail":
        while not (directory.parent / "fail now").exists():
            time.sleep(0.01)
        raise ValueError("no such file")
    (folder / "data").write_text(str(os.getpid()))
    note("end")

(directory.parent / f"calls-{os.getpid()}").touch()
data = prepare_once(directory, prepare, fingerprint=fingerprint, poll_s=0.01, timeout_s=900)
print((data / "data").read_text())
"""


def start(
    directory: Path, fingerprint: str = "", seconds: float = 0.2, how: str = ""
) -> subprocess.Popen[str]:
    vendor(directory.parent)
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(directory), fingerprint, str(seconds), how],
        cwd=directory.parent,
        env={**os.environ, "PYTHONPATH": str(directory.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    with ExitStack() as stack:
        for process in processes:
            stack.enter_context(process)
        ends = [process.communicate(timeout=PATIENCE_S) for process in processes]
    return [
        (process.returncode, out.strip(), err)
        for process, (out, err) in zip(processes, ends, strict=True)
    ]


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} does not come"
        time.sleep(0.01)


def log(tmp_path: Path) -> list[str]:
    return (tmp_path / "log").read_text().splitlines()


def test_one_of_many_prepares_and_all_get_the_data(tmp_path: Path) -> None:
    ends = finish([start(tmp_path / "data") for _ in range(6)])
    assert [code for code, _, _ in ends] == [0] * 6, ends
    assert len({out for _, out, _ in ends}) == 1
    assert [line.split()[0] for line in log(tmp_path)] == ["begin", "end"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_preparations_never_overlap(tmp_path: Path) -> None:
    """Each wants other data in the same place, so that all of them prepare."""
    ends = finish([start(tmp_path / "data", str(number), 0.02) for number in range(5)])
    assert {code for code, _, _ in ends} <= {0, 1}
    lines = log(tmp_path)
    assert len(lines) >= 10
    assert [line.split()[0] for line in lines] == ["begin", "end"] * (len(lines) // 2)
    assert all(a.split()[1] == b.split()[1] for a, b in zip(lines[::2], lines[1::2], strict=True))


def test_a_preparer_that_dies_is_succeeded(tmp_path: Path) -> None:
    first = start(tmp_path / "data", seconds=60)
    with first:
        wait_for(tmp_path / "log")
        waiting = start(tmp_path / "data", seconds=0)
        wait_for(tmp_path / f"calls-{waiting.pid}")
        time.sleep(0.2)
        first.kill()
    ((code, out, err),) = finish([waiting])
    assert code == 0, err
    assert out == str(waiting.pid)


def test_a_failure_reaches_those_who_wait(tmp_path: Path) -> None:
    first = start(tmp_path / "data", seconds=0, how="fail")
    wait_for(tmp_path / "log")
    others = [start(tmp_path / "data", seconds=0) for _ in range(2)]
    for other in others:
        wait_for(tmp_path / f"calls-{other.pid}")
    time.sleep(0.5)
    (tmp_path / "fail now").touch()
    ends = finish([first, *others])
    assert "ValueError: no such file" in ends[0][2]
    for code, _, err in ends[1:]:
        assert code == 1
        assert f"PreparationError: process {first.pid} failed" in err
    assert len(log(tmp_path)) == 1
    # Who comes later tries again.
    ((code, _, err),) = finish([start(tmp_path / "data", seconds=0)])
    assert code == 0, err


def _write(text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "data").write_text(text)

    return write


def test_what_is_there_is_used_until_the_fingerprint_changes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for text, fingerprint in (("1", "a"), ("2", "a"), ("3", "b")):
        prepare_once(data, _write(text), fingerprint=fingerprint)
        assert (data / "data").read_text() == ("3" if fingerprint == "b" else "1")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_an_empty_directory_is_filled_and_a_full_one_of_others_is_not(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    prepare_once(data, _write("1"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter").touch()
    with pytest.raises(PreparationError, match="prepare_once did not write"):
        prepare_once(tmp_path / "mine", _write("1"))
    assert (tmp_path / "mine/letter").exists()


def _lock(tmp_path: Path, **changes: object) -> Path:
    record = Owner.current().record() | changes
    path = tmp_path / f".data.lock.{record['token']}"
    path.write_text(json.dumps(record))
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"boot": "an earlier boot"},
        {"started": "1"},
        {"pid": 2**22 + 1},
    ],
    ids=["reboot", "number given again", "no such process"],
)
def test_locks_of_the_dead_do_not_count(tmp_path: Path, changes: dict[str, object]) -> None:
    lock = _lock(tmp_path, **changes)
    prepare_once(tmp_path / "data", _write("1"), timeout_s=0)
    assert not lock.exists()


@pytest.mark.parametrize("changes", [{}, {"host": "another-host", "pid": 2**22 + 1}])
def test_waiting_for_the_living_ends_with_their_name(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    lock = _lock(tmp_path, **changes)
    with pytest.raises(PreparationTimeout) as raised:
        prepare_once(tmp_path / "data", _write("1"), timeout_s=0.1, poll_s=0.01)
    owner = json.loads(lock.read_text())
    assert f"process {owner['pid']} on host {owner['host']}" in str(raised.value)
    assert "0.1 s" in str(raised.value)
    assert not (tmp_path / "data").exists()
