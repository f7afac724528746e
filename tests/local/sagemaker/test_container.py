"""A host loads what its job uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from orchestration.local.sagemaker.hosts import container
from tests.patience import PATIENCE_S

# As `main` does it, in a process that has loaded nothing yet.
_CODE = """
import runpy, sys
sys.modules["paramiko"] = runpy.run_path(sys.argv[1])["_LoadedOnUse"]("paramiko")
from sagemaker_training import mpi, trainer
assert "paramiko.client" not in sys.modules
assert mpi.paramiko.SSHClient is sys.modules["paramiko.client"].SSHClient
"""


@pytest.mark.toolkit
def test_ssh_loads_when_it_is_used() -> None:
    command = [sys.executable, "-c", _CODE, container.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
