"""The benchmarks that benchmarks/README.md tells of are those that exist, and they run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shown.pages import ShownCommand, steps

ROOT = Path(__file__).parents[2]
README = ROOT / "benchmarks" / "README.md"
# Each with the least that it can be asked for.
LEAST = {
    "chains.py": ["2"],
    "definitions.py": [],
    "deploying.py": ["--pipeline", "served", "--without-removals"],
    "import_time.py": [],
    "overhead.py": [],
    "parsing.py": [],
    "planning.py": ["--runs", "1"],
    "processes.py": ["--runs", "1"],
    "render.py": [],
    "runs.py": ["--example", "digits", "--on", "direct"],
    "staging.py": ["--objects", "3", "--on", "direct"],
    "validation.py": [],
}
NOT_RUN = {
    "promotions.py": "five minutes of a processor, and has no less to be asked for",
    "installation.py": "an index of packages",
    "tutorial.py": "an index of packages; tests/artifacts/test_tutorial.py runs its commands",
}
PARTS = {"hand_written.py": "the DAG that parsing.py compares with"}
SHOWN = [step.line for step in steps(README) if isinstance(step, ShownCommand)]
# What a command of the page can be asked for, so that it ends sooner.
LESS = {"python tools/planning/fit.py --cross-validate": ["--help"]}


def _runs(arguments: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_table_has_each_benchmark() -> None:
    rows = re.findall(r"^\| `(\w+\.py)`", README.read_text("utf-8"), re.MULTILINE)
    scripts = {path.name for path in README.parent.glob("*.py")} - PARTS.keys()
    assert sorted(rows) == sorted(scripts) == sorted({*LEAST, *NOT_RUN})
    assert LESS.keys() <= {*SHOWN}


@pytest.mark.thorough
@pytest.mark.toolkit
@pytest.mark.parametrize("name", LEAST)
def test_a_benchmark_runs(name: str) -> None:
    module = f"benchmarks.{Path(name).stem}"
    started = (
        ["-m", module] if f"`python -m {module}`" in README.read_text() else [f"benchmarks/{name}"]
    )
    assert _runs([*started, *LEAST[name]])


@pytest.mark.thorough
@pytest.mark.parametrize("line", SHOWN)
def test_a_command_of_the_page_runs(line: str) -> None:
    program, *arguments = line.split()
    assert program == "python"
    assert _runs([*arguments, *LESS.get(line, [])])
