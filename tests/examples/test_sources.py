"""What both examples promise: whole checkpoints, shared modules alike, data as documented."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.examples import jobs

NAMES = ("digits", "llm_fsx")


@pytest.fixture
def checkpoints() -> Iterator[ModuleType]:
    with jobs.imported(jobs.EXAMPLES / "digits/src", "checkpoints") as module:
        yield module


@pytest.mark.parametrize("module", ["checkpoints.py", "container.py"])
def test_shared_modules_are_the_same(module: str) -> None:
    first, second = ((jobs.EXAMPLES / name / "src" / module).read_bytes() for name in NAMES)
    assert first == second


@pytest.mark.parametrize("example", NAMES)
def test_data_is_what_its_readme_says(example: str) -> None:
    folder = jobs.EXAMPLES / example / "data"
    rows = re.findall(r"\| `([^`]+)` \| \d+ \| `(\w{64})` \|", (folder / "README.md").read_text())
    shipped = {path.name for path in folder.iterdir() if path.is_file()}
    assert {name for name, _ in rows} == shipped - {"README.md", "make.py"}
    for name, digest in rows:
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_ship_log_is_what_its_script_writes() -> None:
    folder = jobs.EXAMPLES / "llm_fsx/data"
    with jobs.imported(folder, "make") as make:
        for name, content in make.files().items():
            assert (folder / name).read_bytes() == content


def test_checkpoint_is_absent_until_it_is_whole(checkpoints: ModuleType, tmp_path: Path) -> None:
    with checkpoints.writing(tmp_path, "epoch-0001") as folder:
        (folder / "model.pt").write_text("one")
        assert checkpoints.newest(tmp_path) is None
    assert checkpoints.newest(tmp_path) == tmp_path / "epoch-0001"
    assert [path.name for path in tmp_path.iterdir()] == ["epoch-0001"]


def test_newest_passes_over_what_a_crash_left(checkpoints: ModuleType, tmp_path: Path) -> None:
    for name in ("epoch-0001", "epoch-0002"):
        with checkpoints.writing(tmp_path, name) as folder:
            (folder / "model.pt").write_text("whole")
    with pytest.raises(FileNotFoundError), checkpoints.writing(tmp_path, "epoch-0003") as folder:
        (folder / "no such folder/model.pt").write_text("half")
    # Copied back from S3 file by file, one cut short.
    (tmp_path / "epoch-0002/model.pt").write_text("wh")
    assert checkpoints.newest(tmp_path) == tmp_path / "epoch-0001"


def test_checkpoint_of_the_same_name_is_replaced(checkpoints: ModuleType, tmp_path: Path) -> None:
    for content in ("first", "second"):
        with checkpoints.writing(tmp_path, "step-00000001") as folder:
            (folder / content).write_text(content)
    assert (tmp_path / "step-00000001/second").read_text() == "second"
    assert not (tmp_path / "step-00000001/first").exists()
