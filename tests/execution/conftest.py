"""One embedded account for all launches; every accelerated host has two devices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.local import EmbeddedAws

ROOT = Path(__file__).parents[2]
TENSORFLOW_PYTHON = "ORCHESTRATION_LOCAL_TENSORFLOW_PYTHON"


@pytest.fixture(scope="package")
def aws() -> Iterator[EmbeddedAws]:
    own = ROOT / ".venv-tensorflow/bin/python"
    with pytest.MonkeyPatch.context() as patch:
        if own.exists() and TENSORFLOW_PYTHON not in os.environ:
            patch.setenv(TENSORFLOW_PYTHON, str(own))
        stand_ins = Path(__file__).with_name("stand_ins")
        patch.setenv("PATH", f"{stand_ins}{os.pathsep}{os.environ['PATH']}")
        with EmbeddedAws(time_scale=0.005, devices_per_host=2) as embedded:
            yield embedded
