"""``tools/planning/measure_traffic.py``, which measures with a GPU alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow  # torch takes seconds to import
def test_a_machine_without_a_gpu_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    ended = subprocess.run(
        [sys.executable, ROOT / "tools/planning/measure_traffic.py", tmp_path],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert ended.stderr.startswith("measure_traffic.py needs a GPU, but PyTorch ")
    assert not list(tmp_path.iterdir())
