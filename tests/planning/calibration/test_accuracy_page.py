"""The tables that ``tools/planning/accuracy.py`` writes into pages."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def accuracy() -> ModuleType:
    """Import the tool, which is no part of any package."""
    spec = importlib.util.spec_from_file_location("accuracy", ROOT / "tools/planning/accuracy.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["accuracy"] = module
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_fresh(accuracy: ModuleType) -> None:
    pages = accuracy.written()
    assert {path.relative_to(ROOT).as_posix() for path in pages} == {
        "docs/planning.md",
        "benchmarks/README.md",
    }
    for path, fresh in pages.items():
        assert path.read_text(encoding="utf-8") == fresh, "run python tools/planning/accuracy.py"


def test_scores_of_other_coefficients_are_refused(
    accuracy: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stale = tmp_path / "left_out.json"
    stale.write_text('{"of": "another", "rows": {}}')
    monkeypatch.setattr(accuracy, "LEFT_OUT", stale)
    with pytest.raises(SystemExit, match="run with --cross-validate"):
        accuracy.written()
