"""What a process sees that was really launched: by torchrun, SageMaker's toolkit and mpirun."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from orchestration.local.processes.ports import free_ports
from orchestration.stages.vendoring import vendor
from tests.patience import PATIENCE_S

# Two processes share a file, so that none of them can believe to be alone.
SCRIPT = """
import dataclasses, json, os, sys, time
from pathlib import Path
from orchestration_runtime import Folders, cluster, prepare_once

here = cluster()
shared = Path(sys.argv[-1] if len(sys.argv) > 1 else os.environ["SHARED"])
seen = dataclasses.asdict(here)
seen["prepared_by"] = (
    prepare_once(
        shared / f"prepared-{here.node_rank}",
        lambda folder: (folder / "by").write_text(str(here.rank)),
        timeout_s=900,
    )
    / "by"
).read_text()
(shared / f"rank-{here.rank}.json").write_text(json.dumps(seen))
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    folder.mkdir()
    vendor(folder)
    (folder / "train.py").write_text(SCRIPT)
    (tmp_path / "seen").mkdir()
    return folder


def seen_by_ranks(tmp_path: Path) -> list[dict[str, Any]]:
    paths = (tmp_path / "seen").glob("rank-*.json")
    seen: list[dict[str, Any]] = [json.loads(path.read_text()) for path in paths]
    return sorted(seen, key=lambda one: int(one["rank"]))


def column(seen: list[dict[str, Any]], name: str) -> list[Any]:
    return [one[name] for one in seen]


def environment(**more: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **more}


def free_port() -> str:
    return str(*free_ports())


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="Open MPI's mpirun is not installed")
def test_mpirun(source: Path, tmp_path: Path) -> None:
    allow = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    local = ("--mca", "oob_tcp_if_include", "lo", "--mca", "btl", "self,vader")
    command = ["mpirun", "-np", "3", "--oversubscribe", *local, sys.executable, "train.py"]
    done = subprocess.run(
        [*command, str(tmp_path / "seen")],
        cwd=source,
        env=environment(SM_HOSTS='["algo-1"]', SM_CURRENT_HOST="algo-1", **allow),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = seen_by_ranks(tmp_path)
    assert column(seen, "launcher") == ["mpirun"] * 3
    assert column(seen, "rank") == column(seen, "local_rank") == [0, 1, 2]
    assert column(seen, "world_size") == column(seen, "local_size") == [3] * 3
    assert column(seen, "current_host") == ["algo-1"] * 3
    assert len(set(column(seen, "prepared_by"))) == 1


@pytest.mark.toolkit
def test_torchrun_on_one_host(source: Path, tmp_path: Path) -> None:
    command = ["torchrun", "--nproc_per_node", "2"]
    done = subprocess.run(
        [*command, "--master_port", free_port(), "train.py", str(tmp_path / "seen")],
        cwd=source,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = seen_by_ranks(tmp_path)
    assert column(seen, "launcher") == ["torchrun"] * 2
    assert column(seen, "rank") == column(seen, "local_rank") == [0, 1]
    assert column(seen, "current_host") == ["localhost"] * 2
    assert len(set(column(seen, "prepared_by"))) == 1


HOSTS = ("127.0.0.1", "127.0.0.2")


def prepare_host(base: Path, host: str, source: Path) -> None:
    group = {"instance_group_name": "all", "instance_type": "ml.p3.2xlarge", "hosts": HOSTS}
    files = {
        "hyperparameters": {
            "sagemaker_program": '"train.py"',
            "sagemaker_submit_directory": json.dumps(str(source)),
            "sagemaker_torch_distributed_enabled": "true",
            "sagemaker_instance_type": '"ml.p3.2xlarge"',
        },
        "resourceconfig": {
            "current_host": host,
            "current_instance_type": "ml.p3.2xlarge",
            "current_group_name": "all",
            "hosts": HOSTS,
            "instance_groups": [group],
            "network_interface_name": "lo",
        },
        "inputdataconfig": {},
    }
    for name in ("input/config", "output"):
        (base / name).mkdir(parents=True)
    for name, content in files.items():
        (base / f"input/config/{name}.json").write_text(json.dumps(content))


@pytest.mark.toolkit
def test_sagemakers_toolkit_on_two_hosts(source: Path, tmp_path: Path) -> None:
    port = free_port()
    logs = []
    with ExitStack() as stack:
        processes = []
        for host in HOSTS:
            base = tmp_path / host
            prepare_host(base, host, source)
            logs.append(base / "log.txt")
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "orchestration.local.sagemaker.hosts.container"],
                    env=environment(
                        SAGEMAKER_BASE_DIR=str(base),
                        SAGEMAKER_TRAINING_MODULE="sagemaker_pytorch_container.training:main",
                        TRAINING_JOB_NAME="launches",
                        PYTHONPATH=str(Path(__file__).parents[2]),
                        ORCHESTRATION_LOCAL_DEVICES="2",
                        ORCHESTRATION_LOCAL_PORT=port,
                        SHARED=str(tmp_path / "seen"),
                    ),
                    stdout=stack.enter_context(logs[-1].open("w")),
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
            stack.callback(_end, process)
            processes.append(process)
        for process in processes:
            process.wait(PATIENCE_S)
    log = "".join(path.read_text() for path in logs)
    assert [(tmp_path / host / "output/success").exists() for host in HOSTS] == [True] * 2, log
    seen = seen_by_ranks(tmp_path)
    assert column(seen, "rank") == [0, 1, 2, 3], log
    assert column(seen, "node_rank") == [0, 0, 1, 1]
    assert column(seen, "local_rank") == [0, 1, 0, 1]
    assert column(seen, "current_host") == [HOSTS[0], HOSTS[0], HOSTS[1], HOSTS[1]]
    first = seen[0]
    assert (first["launcher"], first["world_size"], first["local_size"]) == ("torchrun", 4, 2)
    assert (first["accelerator"], first["devices_per_host"]) == ("gpu", 2)
    assert (first["master_address"], str(first["master_port"])) == (HOSTS[0], port)
    assert (first["group"], first["groups"][0]["instance_type"]) == ("all", "ml.p3.2xlarge")
    assert len(set(column(seen, "prepared_by"))) == 2


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
