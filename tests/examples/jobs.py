"""Training jobs of the examples: the in-container toolkit in a folder of its own, no container."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from orchestration.local.processes.ports import free_ports
from orchestration.stages import packing
from tests.patience import PATIENCE_S

EXAMPLES = Path(__file__).parents[2] / "examples"
TIMEOUT_S = PATIENCE_S

Hyperparameters = dict[str, str | int | float | bool]


@functools.cache
def source(example: str, stage: str = "train") -> Path:
    """Lay out a stage's code with the runtime, as a container gets it; once per process."""
    code = EXAMPLES / example / stage
    shared = str(EXAMPLES / example / "shared")
    target = Path(tempfile.mkdtemp(prefix="orchestration-example-"))
    atexit.register(shutil.rmtree, target, ignore_errors=True)
    for name, path in packing.files(code, runtime=True, dependencies=[shared]):
        (target / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(path, target / name)
    return target


@dataclass(frozen=True)
class Finished:
    """What is left of a job."""

    base: Path
    log: str

    @property
    def succeeded(self) -> bool:
        # The toolkit's exit status is 0 in some failures; this file never lies.
        return (self.base / "output/success").exists()

    @property
    def failure(self) -> str:
        return (self.base / "output/failure").read_text()

    @property
    def checkpoints(self) -> dict[str, dict[str, Any]]:
        """The metrics of each checkpoint, hidden folders included."""
        folders = sorted((self.base / "checkpoints").iterdir())
        return {path.name: json.loads((path / "metrics.json").read_text()) for path in folders}


def train(
    base: Path,
    example: str,
    hyperparameters: Hyperparameters,
    *,
    processes: int = 1,
    terminate_when: Callable[[Path], bool] | None = None,
) -> Finished:
    """Run an example's train.py under torchrun as SageMaker's toolkit would on one host."""
    _prepare(base, example, hyperparameters, processes)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "SAGEMAKER_BASE_DIR": str(base),
        "SAGEMAKER_TRAINING_MODULE": "sagemaker_pytorch_container.training:main",
        "TRAINING_JOB_NAME": base.name,
        # torchrun's own default is one port for everybody on this machine.
        "PET_MASTER_PORT": str(*free_ports()),
        "OMP_NUM_THREADS": "1",
    }
    log = base / "log.txt"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "sagemaker_training.cli.train"],
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            if terminate_when:
                wait_for(lambda: terminate_when(base) or process.poll() is not None)
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(TIMEOUT_S)
            wait_for(lambda: not _group_lives(process.pid))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return Finished(base, log.read_text())


def evaluate(example: str, checkpoint: Path, output: Path) -> dict[str, Any]:
    """What an example's evaluate.py says about a checkpoint on the data it ships."""
    data = EXAMPLES / example / "data"
    script = source(example, "evaluate") / "evaluate.py"
    arguments = ["--checkpoint", str(checkpoint), "--data", str(data), "--output", str(output)]
    subprocess.run([sys.executable, str(script), *arguments], check=True, timeout=TIMEOUT_S)
    evaluation: dict[str, Any] = json.loads((output / "evaluation.json").read_text())
    return evaluation


@contextlib.contextmanager
def imported(folder: Path, name: str) -> Iterator[ModuleType]:
    """A module of a source folder, which finds its neighbours as it would in the container."""
    neighbours = {path.stem for path in folder.iterdir()}
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        for loaded in [name for name in sys.modules if name.partition(".")[0] in neighbours]:
            del sys.modules[loaded]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing happened for {TIMEOUT_S} s")
        time.sleep(0.05)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _prepare(base: Path, example: str, hyperparameters: Hyperparameters, processes: int) -> None:
    launcher: Hyperparameters = {
        "sagemaker_program": "train.py",
        "sagemaker_submit_directory": str(source(example)),
        "sagemaker_torch_distributed_enabled": True,
        "sagemaker_instance_type": "ml.c5.xlarge",
        "sagemaker_mpi_num_of_processes_per_host": processes,
    }
    host = "127.0.0.1"
    group = {"instance_group_name": "all", "instance_type": "ml.c5.xlarge", "hosts": [host]}
    resources = {
        "current_host": host,
        "current_instance_type": "ml.c5.xlarge",
        "current_group_name": "all",
        "hosts": [host],
        "instance_groups": [group],
        "network_interface_name": "lo",
    }
    channel = {"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated"}
    files = {
        "hyperparameters": {
            name: json.dumps(value) for name, value in (launcher | hyperparameters).items()
        },
        "resourceconfig": resources,
        "inputdataconfig": {"training": channel},
    }
    for name in ("input/config", "input/data", "output"):
        (base / name).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (base / f"input/config/{name}.json").write_text(json.dumps(content))
    training = base / "input/data/training"
    if not training.exists():
        training.symlink_to(EXAMPLES / example / "data")
