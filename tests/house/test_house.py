"""What holds for every file of this repository."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

_ROOT = Path(__file__).resolve().parent.parent.parent

# Someone's home, a temporary folder, a build machine. Written so that this file does not hold them.
_MACHINE_PATH = re.compile(r"(?<![\w.${}~-])/(?:home|Users|root|work|mnt)/[\w.-]+")
_PLACE = re.compile(r"://|^\s*(?:-i|-f|--(?:extra-)?index-url|--find-links|file:)|@", re.MULTILINE)
_TEXT = {".cfg", ".ini", ".json", ".md", ".mjs", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml", ""}


def _project_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=_ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [_ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def _text_files() -> list[Path]:
    return [path for path in _project_files() if path.suffix in _TEXT]


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    found = []
    for path in _text_files():
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            for match in _MACHINE_PATH.finditer(line):
                if path.name != Path(__file__).name:
                    found.append(f"{path.relative_to(_ROOT)}:{number}: {match.group()}")
    assert found == []


def test_constraints_pin_versions_and_name_no_place() -> None:
    text = (_ROOT / "constraints.txt").read_text()
    pins = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][\w.!]*", pin)] == []
    assert _PLACE.search("\n".join(pins)) is None


def test_constraints_hold_the_installed_versions() -> None:
    """What the tests ran with is what the constraints say (3.11 only: made for it)."""
    if sys.version_info[:2] != (3, 11):
        pytest.skip("constraints.txt is made for Python 3.11")
    from importlib.metadata import version

    for name in ("apache-airflow", "apache-airflow-providers-amazon", "moto", "pydantic", "ruff"):
        assert f"{name}=={version(name)}" in (_ROOT / "constraints.txt").read_text().splitlines()


def test_node_lock_names_no_registry() -> None:
    lock = json.loads((_ROOT / "tools" / "asl" / "package-lock.json").read_text())
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    unpinned = [
        name
        for name, package in lock["packages"].items()
        if name and "integrity" not in package and not package.get("link")
    ]
    assert unpinned == []


def test_no_file_ends_without_a_newline_or_has_trailing_blanks() -> None:
    bad = []
    for path in _text_files():
        text = path.read_text("utf-8")
        if text and (not text.endswith("\n") or re.search(r"[ \t]+$", text, re.MULTILINE)):
            bad.append(str(path.relative_to(_ROOT)))
    assert bad == []


def test_shell_scripts_are_executable() -> None:
    scripts = [_ROOT / ".ci" / "run", *(_ROOT / "tools").glob("*.sh")]
    assert [str(script) for script in scripts if not script.stat().st_mode & 0o100] == []


def test_floors_hold() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=_ROOT,
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_runs_in_the_container_imports_the_standard_library_only() -> None:
    runtime = _ROOT / "orchestration" / "runtime"
    assert runtime.is_dir()
    foreign = set()
    for path in runtime.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            else:
                continue
            foreign |= {
                f"{path.name}: {name}"
                for name in names
                if name.partition(".")[0] not in sys.stdlib_module_names
                and not name.startswith("orchestration.runtime")
            }
    assert foreign == set()


def test_the_readme_of_the_tests_lists_every_folder_and_what_is_fast() -> None:
    rows = re.findall(
        r"^\| `([\w*.]+)/?` \| (fast)? *\|", (_ROOT / "tests/README.md").read_text(), re.MULTILINE
    )
    folders = {path.parent.name for path in (_ROOT / "tests").glob("*/*") if path.is_file()}
    assert {name for name, _ in rows} == folders - {"__pycache__"} | {"test_*.py"}
    assert _fast_folders() == {name for name, fast in rows if fast} - {"test_*.py"}


def test_what_is_fast_starts_neither_the_embedded_aws_nor_airflow() -> None:
    starting = re.compile(
        r"\bEmbeddedAws\b|^(?:from|import) (?:orchestration\.)?airflow\b", re.MULTILINE
    )
    slow = []
    for folder in _fast_folders():
        for path in (_ROOT / "tests" / folder).rglob("*.py"):
            text = path.read_text("utf-8")
            if starting.search(text) and "pytestmark = pytest.mark.slow" not in text:
                slow.append(str(path.relative_to(_ROOT)))
    assert slow == []


def _fast_folders() -> set[str]:
    makefile = (_ROOT / "Makefile").read_text().replace("\\\n", " ")
    listed = re.search(r"^FAST := \$\(addprefix tests/,([^)]*)\)", makefile, re.MULTILINE)
    assert listed is not None
    return set(listed[1].split())
