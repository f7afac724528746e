"""Runs a function that is killed at its n-th touch of the disk, for every n.

`python crashes.py FUNCTION DIRECTORY`; prints how many crashes there were. A child of each n is
killed by SIGKILL just before the operating system would do what it asks for, so every state that
the disk can be left in by a death of the process is seen.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from orchestration.runtime import Checkpoints, prepare_once

_TOUCHES = {"open", "os.rename", "os.mkdir", "os.link"}
# shutil.rmtree names these relative to an open folder.
_REMOVALS = {"os.remove", "os.rmdir"}
_LENGTHS = {1: 1000, 2: 2000, 3: 3000}


def kept(directory: Path) -> Checkpoints:
    return Checkpoints(directory, prefix="step-", keep_last=1)


def save(directory: Path, number: int, fill: str) -> None:
    def write(folder: Path) -> None:
        for name in ("a", "deep/b"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(fill * _LENGTHS[number])

    kept(directory).save(number, write, {"loss": 1 / number})


def start_saving(directory: Path) -> None:
    save(directory, 1, "x")


def go_on_saving(directory: Path) -> None:
    save(directory, 2, "x")
    save(directory, 2, "y")


def check_saving(directory: Path) -> None:
    parts = [path for path in directory.glob("step-*") if not (path / "manifest.json").exists()]
    # What is listed to be evaluated is whole.
    assert parts == []
    newest = kept(directory).newest()
    assert newest is not None, f"lost: {sorted(os.listdir(directory))}"
    texts = {(newest.path / name).read_text() for name in ("a", "deep/b")}
    (text,) = texts
    assert len(text) == _LENGTHS[newest.number]
    assert json.loads((newest.path / "metrics.json").read_text())["step"] == newest.number
    save(directory, 3, "z")
    assert sorted(os.listdir(directory)) == ["step-00000003"]


def start_preparing(directory: Path) -> None:
    prepare_once(directory / "data", _prepare("old"), fingerprint="old")


def go_on_preparing(directory: Path) -> None:
    prepare_once(directory / "data", _prepare("new"), fingerprint="new", timeout_s=10)


def check_preparing(directory: Path) -> None:
    go_on_preparing(directory)
    data = directory / "data"
    assert [(data / name).read_text() for name in "ab"] == ["new", "new"]
    # A crash can leave hidden files that nobody looks at, but no lock that lives.
    go_on_preparing(directory)


def _prepare(text: str) -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        assert list(folder.iterdir()) == []
        for name in "ab":
            (folder / name).write_text(text)

    return fill


def crash_everywhere(
    start: Callable[[Path], None],
    go_on: Callable[[Path], None],
    check: Callable[[Path], None],
    directory: Path,
) -> int:
    for number in range(1, 10_000):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        start(directory)
        child = os.fork()
        if child == 0:
            _die_at(number, directory)
            go_on(directory)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        check(directory)
        if not os.WIFSIGNALED(status):
            assert status == 0
            return number - 1
    raise AssertionError("it never ends")


def _die_at(number: int, directory: Path) -> None:
    left = number

    def watch(event: str, args: tuple[object, ...]) -> None:
        nonlocal left
        inside = event in _TOUCHES and str(args[0]).startswith(str(directory))
        if inside or event in _REMOVALS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


if __name__ == "__main__":
    what, where = sys.argv[1], Path(sys.argv[2])
    functions = {
        "saving": (start_saving, go_on_saving, check_saving),
        "preparing": (start_preparing, go_on_preparing, check_preparing),
    }
    sys.stdout.write(f"{crash_everywhere(*functions[what], where / 'crashes')}\n")
