"""Environments that tests of further versions run in, each kept until what it holds changes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def made(
    name: str, interpreter: Path, constraints: Iterable[str], installs: Sequence[Sequence[str]]
) -> Path:
    """Return the interpreter of an environment, made or brought up to date.

    `installs` are the arguments of installers, one call each.
    """
    directory = ROOT / f".venv-{name}"
    python, marker = directory / "bin" / "python", directory / ".installed"
    text = "\n".join([*constraints, ""])
    asked = [" ".join(each) for each in installs]
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    wanted = "\n".join([str(ROOT), str(interpreter), *asked, text, project])
    if marker.is_file() and marker.read_text("utf-8") == wanted:
        return python
    shutil.rmtree(directory, ignore_errors=True)
    subprocess.run([interpreter, "-m", "venv", "--without-pip", directory], check=True)
    (directory / ".gitignore").write_text("*\n")
    pins = directory / "constraints.txt"
    pins.write_text(text, "utf-8")
    for installer in _installers(python):
        commands = [[*installer, "--constraint", str(pins), *each] for each in installs]
        if all(subprocess.run(command, check=False).returncode == 0 for command in commands):
            break
    else:
        raise SystemExit(f"{directory.name} can't be installed")
    marker.write_text(wanted, "utf-8")
    return python


def interpreter(version: str) -> Path | None:
    """Return the interpreter of a version of Python, if this machine has it."""
    # pyenv has a command for each version that it ever had, which runs the one that is chosen.
    chosen = {**os.environ, "PYENV_VERSION": version}
    command = [f"python{version}", "-c", "import sys; print(sys.executable)"]
    if shutil.which(command[0]) is not None:
        asked = subprocess.run(command, env=chosen, capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            return Path(asked.stdout.strip())
    uv = _uv()
    if uv is not None:
        command = [uv, "python", "find", "--no-python-downloads", version]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            return Path(asked.stdout.strip())
    return None


def pinned(path: Path) -> dict[str, str]:
    """Return the lines of a file of constraints, by the normal names of their packages."""
    lines = (line.strip() for line in path.read_text("utf-8").splitlines())
    pins = (line for line in lines if line and not line.startswith("#"))
    return {re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower(): pin for pin in pins}


def _installers(python: Path) -> Iterator[list[str]]:
    """Yield the commands that install: uv in a tenth of pip's time, if it is there and may."""
    uv = _uv()
    if uv is not None:
        # The certificates of the machine, as pip takes them.
        os.environ.setdefault("UV_SYSTEM_CERTS", "1")
        yield [uv, "pip", "install", "--quiet", "--python", str(python)]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq", "--no-compile"]
    yield [*pip, "--no-input", "--disable-pip-version-check"]


def _uv() -> str | None:
    return shutil.which("uv", path=str(Path(sys.executable).parent))
