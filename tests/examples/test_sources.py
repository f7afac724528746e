"""Rules that hold for both examples: shared modules are alike, data is as documented."""

from __future__ import annotations

import hashlib
import re

import pytest

from tests.examples import jobs

NAMES = ("digits", "llm_fsx")


def test_shared_modules_are_the_same() -> None:
    first, second = ((jobs.EXAMPLES / name / "train/launch.py").read_bytes() for name in NAMES)
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
