"""Shells complete commands, options and the values that are known."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# A shell replaces itself with a single command, whose parent would be another shell, if any.
INSTALL = "orchestrate --install-completion; true"
# What a shell does with what `--install-completion` has written: the words of the line are `$@`.
BASH = """
. "$HOME/.bash_completions/orchestrate.sh"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_orchestrate_completion orchestrate
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = 'source $HOME/.config/fish/completions/orchestrate.fish; complete -C "$argv"'


def in_shell(shell: str, home: Path, script: str, *words: str) -> list[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "HOME": str(home), "PATH": path}
    environ.pop("XDG_CONFIG_HOME", None)
    line = [shell, "-c", script, *([shell] if shell == "bash" else []), *words]
    done = subprocess.run(line, env=environ, capture_output=True, text=True, check=True)
    return [each.split("\t")[0] for each in done.stdout.splitlines() if each.strip()]


CASES = [
    (("check",), {"check-script"}),
    (("run", "--ke"), {"--keep"}),
    (("run", "--on", ""), {"direct", "step-functions", "airflow"}),
    (("init", "churn", "--template", "t"), {"text-classifier", "tuning"}),
    (("explain", "NoCh"), {"NoCheckpoints"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "completed"), CASES)
def test_bash_completes_what_was_installed(
    words: tuple[str, ...], completed: set[str], tmp_path: Path
) -> None:
    in_shell("bash", tmp_path, INSTALL)
    assert {*in_shell("bash", tmp_path, BASH, "orchestrate", *words)} == completed


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(("words", "completed"), CASES)
def test_fish_completes_what_was_installed(
    words: tuple[str, ...], completed: set[str], tmp_path: Path
) -> None:
    in_shell("fish", tmp_path, INSTALL)
    assert {*in_shell("fish", tmp_path, FISH, " ".join(("orchestrate", *words)))} == completed
