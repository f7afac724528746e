"""``orchestrate vendor-runtime`` and ``schema -o``: what they write, and what they leave alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Command


def test_a_script_imports_the_copy_without_this_package(
    orchestrate: Command, tmp_path: Path
) -> None:
    said = orchestrate("vendor-runtime", tmp_path)
    assert (said.status, said.out) == (0, f"{tmp_path / 'orchestration_runtime'}\n")
    (tmp_path / "train.py").write_text(
        "import orchestration_runtime, sys\n"
        "assert 'orchestration' not in sys.modules\n"
        "print(orchestration_runtime.global_batch(8, per_replica=32))\n"
    )
    # Isolated: neither site-packages nor this checkout is on its path.
    command = [sys.executable, "-S", "-E", "train.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "256\n"), ran.stderr


def test_a_folder_of_someone_else_is_left_alone(orchestrate: Command, tmp_path: Path) -> None:
    own = tmp_path / "orchestration_runtime" / "mine.py"
    own.parent.mkdir()
    own.write_text("mine = True\n")
    said = orchestrate("vendor-runtime", tmp_path)
    assert said.status == 1
    assert "mine.py, not copied from orchestration.runtime" in said.err
    assert [path.name for path in own.parent.iterdir()] == ["mine.py"]


def test_json_names_the_files(orchestrate: Command, tmp_path: Path) -> None:
    document = orchestrate("vendor-runtime", tmp_path, "--json").document
    copied = tmp_path / "orchestration_runtime"
    assert document["directory"] == str(copied)
    assert sorted(document["files"]) == sorted(map(str, copied.iterdir()))


def test_a_misspelled_folder_is_not_made(orchestrate: Command, tmp_path: Path) -> None:
    assert orchestrate("vendor-runtime", tmp_path / "scr").status == 2
    assert not (tmp_path / "scr").exists()


def test_a_schema_is_written_once_and_then_compared(orchestrate: Command, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.schema.json"
    assert orchestrate("schema", "-o", file, "--check").status == 1
    assert orchestrate("schema", "-o", file).status == 0
    assert json.loads(file.read_text()) == orchestrate("schema").document
    assert orchestrate("schema", "-o", file, "--check").status == 0
    file.write_text("{}\n")
    assert orchestrate("schema", "-o", file, "--check").status == 1
