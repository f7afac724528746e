"""The tutorial, by its own commands: from an empty folder to a model that answers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guides import TUTORIAL

_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def _perform(command: str, folder: Path) -> Path:
    """Run a command as a reader would; returns the folder that the next one runs in."""
    if command.startswith("cd "):
        return folder / command.removeprefix("cd ")
    if command.startswith("orchestrate run"):
        command += " --time-scale 0.002"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command.split(),
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return folder


def _changed(text: str, difference: str) -> str:
    lines = difference.splitlines()
    for old, new in zip(lines[::2], lines[1::2], strict=True):
        assert (old[0], new[0]) == ("-", "+")
        assert text.count(old[1:]) == 1
        text = text.replace(old[1:], new[1:])
    return text


@pytest.mark.toolkit
@pytest.mark.slow
def test_the_tutorial_ends_with_a_model_of_ones_own(tmp_path: Path) -> None:
    folder = tmp_path
    commands = 0
    for language, text in _BLOCK.findall(TUTORIAL.read_text("utf-8")):
        if language == "console":
            for command in re.findall(r"^\$ (.*)$", text, re.MULTILINE):
                folder = _perform(command, folder)
                commands += 1
        elif language == "diff":
            pipeline = folder / "tumours.yaml"
            pipeline.write_text(_changed(pipeline.read_text("utf-8"), text), "utf-8")
        else:
            name = text.partition("\n")[0].removeprefix("# ")
            (folder / name).write_text(text, "utf-8")
    assert commands == 7
    assert "trees: 50" in (folder / "tumours.yaml").read_text("utf-8")
