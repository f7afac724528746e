"""Parameter servers and mirrored workers, as TensorFlow's container starts them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestration import MultiWorkerMirrored, ParameterServer
from orchestration.local import EmbeddedAws
from orchestration.local.sagemaker.hosts import isolation
from tests.execution.conftest import ROOT, TENSORFLOW_PYTHON
from tests.execution.launched import TENSORFLOW, hosts, launch

PYTHON = Path(os.environ.get(TENSORFLOW_PYTHON, ROOT / ".venv-tensorflow/bin/python"))
LACKING = isolation.missing(isolation.Need("ports", over_mpirun=False))

pytestmark = [
    pytest.mark.toolkit,
    pytest.mark.slow,
    pytest.mark.skipif(LACKING is not None, reason=str(LACKING)),
    pytest.mark.skipif(
        not PYTHON.exists(), reason="TensorFlow's container is not there: `make setup-tensorflow`"
    ),
]
SCRIPT = "tensorflow_adds_up.py"
NAMES = ["algo-1", "algo-2"]


def test_a_server_and_a_worker_start_on_every_host(aws: EmbeddedAws, tmp_path: Path) -> None:
    done = launch(
        aws,
        tmp_path,
        entry_point=SCRIPT,
        image=TENSORFLOW,
        cluster=hosts(2, "ml.c5.xlarge"),
        strategy=ParameterServer(),
    )
    assert done.column("host") == NAMES, done.log
    assert done.column("task") == [
        {"type": "master", "index": 0},
        {"type": "worker", "index": 0},
    ]
    addresses = {
        "master": ["algo-1:2222"],
        "worker": ["algo-2:2222"],
        "ps": ["algo-1:2223", "algo-2:2223"],
    }
    assert done.column("cluster") == [addresses] * 2
    assert done.column("runtime") == [["tensorflow", "worker", 2]] * 2
    assert done.column("total") == [3.0, 3.0]


def test_mirrored_workers_reduce_over_all_hosts(aws: EmbeddedAws, tmp_path: Path) -> None:
    done = launch(
        aws,
        tmp_path,
        entry_point=SCRIPT,
        image=TENSORFLOW,
        cluster=hosts(2, "ml.c5.xlarge"),
        strategy=MultiWorkerMirrored(),
    )
    assert done.column("host") == NAMES, done.log
    assert done.column("task") == [{"type": "worker", "index": 0}, {"type": "worker", "index": 1}]
    assert done.column("cluster") == [{"worker": ["algo-1:8890", "algo-2:8890"]}] * 2
    assert done.column("total") == [3.0, 3.0]
