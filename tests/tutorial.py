"""The tutorial as its reader follows it, command by command, with a watch."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.guides import TUTORIAL

_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


class Performed(NamedTuple):
    """A command of the page, how long it took, and what it printed."""

    command: str
    seconds: float
    output: str = ""


def followed(folder: Path, scripts: Path, *, run_options: str = "") -> Iterator[Performed]:
    """Do what the page says in an empty folder; yield each command when it has ended well.

    ``scripts`` is the folder of the environment's commands.
    """
    for language, text in _BLOCK.findall(TUTORIAL.read_text("utf-8")):
        if language == "console":
            for command in re.findall(r"^\$ (.*)$", text, re.MULTILINE):
                began = time.monotonic()
                folder, output = _perform(command, folder, scripts, run_options)
                yield Performed(command, time.monotonic() - began, output)
        elif language == "diff":
            pipeline = folder / "tumours.yaml"
            pipeline.write_text(_changed(pipeline.read_text("utf-8"), text), "utf-8")
        else:
            name = text.partition("\n")[0].removeprefix("# ")
            (folder / name).write_text(text, "utf-8")


def _perform(command: str, folder: Path, scripts: Path, run_options: str) -> tuple[Path, str]:
    """Run a command as a reader would; returns the next one's folder, and what this one prints."""
    if command.startswith("cd "):
        return folder / command.removeprefix("cd "), ""
    if command.startswith("orchestrate run"):
        command += run_options
    done = subprocess.run(
        command.split(),
        cwd=folder,
        env={**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return folder, done.stdout


def _changed(text: str, difference: str) -> str:
    lines = difference.splitlines()
    for old, new in zip(lines[::2], lines[1::2], strict=True):
        assert (old[0], new[0]) == ("-", "+")
        assert text.count(old[1:]) == 1
        text = text.replace(old[1:], new[1:])
    return text
