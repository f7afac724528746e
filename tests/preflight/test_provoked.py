"""Each text of a finding is in one that a test provokes."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import orchestration.preflight
from tests.cli.conftest import ROOT
from tests.preflight.recording import FILE

PROVOKING = (
    "tests/preflight",
    "tests/cli/test_doctor.py",
    "tests/cli/test_runs_on_airflow.py"
    "::test_the_doctor_looks_a_connection_up_in_the_airflow_at_a_url",
)


@pytest.mark.thorough  # The tests of the doctor once more, for a minute.
def test_each_text_of_a_finding_is_provoked(tmp_path: Path) -> None:
    texts = tmp_path / "texts.json"
    command = (sys.executable, "-m", "pytest", "-q", "-p", "tests.preflight.recording")
    options = (*PROVOKING, f"--ignore={Path(__file__)}", "-p", "no:cacheprovider")
    ran = subprocess.run(
        [*command, *options],
        cwd=ROOT,
        env={**os.environ, FILE: str(texts)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    provoked = json.loads(texts.read_text())
    package = Path(orchestration.preflight.__file__).parent
    written = [
        (f"{path.relative_to(package)}:{line}", text)
        for path in sorted(package.rglob("*.py"))
        for line, text in phrases(ast.parse(path.read_text()))
    ]
    assert len(written) > 200
    unseen = [
        (where, text.pattern)
        for where, text in written
        if not any(text.search(each) for each in provoked)
    ]
    assert unseen == []


def phrases(module: ast.Module) -> Iterator[tuple[int, re.Pattern[str]]]:
    """Yield the texts with a blank in them that code may say, but for errors of programmers."""
    passed = set(map(id, _silent(module)))
    for node in ast.walk(module):
        if id(node) in passed or not isinstance(node, ast.JoinedStr | ast.Constant):
            continue
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        fixed = [part.value for part in parts if isinstance(part, ast.Constant)]
        if any(isinstance(text, str) and " " in text for text in fixed):
            yield node.lineno, re.compile("".join(map(_pattern, parts)), re.DOTALL)


def _silent(module: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(module):
        match node:
            case ast.Expr(value=ast.Constant() as docstring):
                yield docstring
            case ast.JoinedStr():
                yield from node.values
            case ast.Raise(exc=ast.Call(func=ast.Name(id="ValueError"))):
                yield from ast.walk(node)


def _pattern(part: ast.expr) -> str:
    return re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*"
