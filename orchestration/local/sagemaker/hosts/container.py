"""The start of the in-container training toolkit on a simulated host.

It replaces `train` of a SageMaker image. Because one machine runs several hosts and several jobs at
once, it is told the number of accelerators of the host, the port of the rendezvous (7777 in the
toolkit), and torchrun's default port for a single host.

It runs by its path, and may run in an environment without this package: it imports the standard
library and the toolkits only.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

DEVICES = "ORCHESTRATION_LOCAL_DEVICES"
PORT = "ORCHESTRATION_LOCAL_PORT"
# The first line that is not indented is the exception.
_TRACEBACK = re.compile(rb"[^\n]*\n(?:[ \t][^\n]*\n)*[^ \t\n][^\n]*\n")
# The toolkit gives its workers 30 s to leave mpirun and to see that it ended.
_LONGEST_PAUSE_S = 1.0


def main() -> None:
    """Run the toolkit's `train`."""
    # The toolkit needs SSH for mpirun only; it takes a third of the time that the toolkit loads in.
    sys.modules["paramiko"] = _LoadedOnUse("paramiko")
    from sagemaker_training import environment, process, torch_distributed, trainer

    devices = int(os.environ.pop(DEVICES))
    port = os.environ.pop(PORT)
    # torchrun reads its defaults from PET_*; the toolkit gives no port to a single host.
    os.environ["PET_MASTER_PORT"] = port
    torch_distributed.MASTER_PORT = port
    environment.num_gpus = lambda: 0 if _has_neurons(_instance_type()) else devices
    environment.num_neurons = lambda instance_type: devices if _has_neurons(instance_type) else 0
    _patch_mpi()
    watch = process.watch
    process.watch = lambda stream, *given, **named: watch(WholeTracebacks(stream), *given, **named)
    module = os.environ.get("SAGEMAKER_TRAINING_MODULE", "")
    if module.startswith("sagemaker_pytorch_container"):
        _patch_pytorch(port)
    elif module.startswith("sagemaker_tensorflow_container"):
        _patch_tensorflow()
    trainer.train()


class _LoadedOnUse(ModuleType):
    """A module that loads when something of it is used.

    That of `importlib.util.LazyLoader` loads in Python 3.11 at its next `import`.
    """

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


class WholeTracebacks:
    """A stream that gives each traceback in one piece, however it was written.

    The toolkit (5.1.4) strips every piece that it reads. Python writes a traceback in many, so that
    its lines lose their indentation, and its last one falls apart, as the pieces happen to come.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._held = b""

    async def read(self, size: int) -> bytes:
        """Read until there is something to give."""
        while True:
            piece = await self._stream.read(size)
            self._held += piece
            given = len(self._held) if not piece else self._usable(size)
            if given or not piece:
                text, self._held = self._held[:given], self._held[given:]
                return text

    def _usable(self, size: int) -> int:
        """Return how much is before a traceback, or has one whole at its beginning."""
        begins = re.search(rb"^Traceback \(most recent call last\):$", self._held, re.MULTILINE)
        if begins is None or len(self._held) > size:
            return len(self._held)
        whole = _TRACEBACK.match(self._held, begins.start())
        return begins.start() if whole is None else whole.end()


class _Clock:
    """The module `time`, with short pauses."""

    time = staticmethod(time.time)

    @staticmethod
    def sleep(seconds: float) -> None:
        time.sleep(min(seconds, _LONGEST_PAUSE_S))


def _patch_tensorflow() -> None:
    from sagemaker_tensorflow_container import training

    training.time = _Clock


def _patch_mpi() -> None:
    from sagemaker_training import mpi, smdataparallel

    for module in (mpi, smdataparallel):
        module.time = _Clock
        # In /tmp it would outlive the job and be mistaken for that of the next one.
        module.MPI_FINISHED_STATUS_FILE = str(_job_directory() / "mpirun-ended")


def _job_directory() -> Path:
    return Path(os.environ["SAGEMAKER_BASE_DIR"]).parent


def _patch_pytorch(port: str) -> None:
    from sagemaker_pytorch_container import training

    training.MASTER_PORT = port
    # The toolkit imports PyTorch only for its version, which takes seconds per host.
    training._set_torch_version_environment = _set_torch_version


def _set_torch_version() -> None:
    from importlib import metadata

    with contextlib.suppress(metadata.PackageNotFoundError):
        os.environ["SM_DLC_TORCH_VERSION"] = metadata.version("torch")


def _instance_type() -> str:
    from sagemaker_training import environment

    return str(environment.read_resource_config().get("current_instance_type", ""))


def _has_neurons(instance_type: str) -> bool:
    return instance_type.startswith(("ml.trn", "ml.inf"))


if __name__ == "__main__":
    main()
