"""Starts the in-container training toolkit for one simulated host.

`python -m orchestration.local.sagemaker.container` is what `train` is in a SageMaker PyTorch
image, with three things told from outside because one machine plays several hosts, and several
jobs at once: how many accelerators the host has, the port of the rendezvous (7777 in the
toolkit), and torchrun's default port for a single host.
"""

from __future__ import annotations

import contextlib
import os

DEVICES = "ORCHESTRATION_LOCAL_DEVICES"
PORT = "ORCHESTRATION_LOCAL_PORT"


def main() -> None:
    """Run the toolkit's `train`."""
    from sagemaker_pytorch_container import training
    from sagemaker_training import environment, torch_distributed, trainer

    devices = int(os.environ.pop(DEVICES))
    port = os.environ.pop(PORT)
    # torchrun reads its defaults from PET_*; the toolkit gives no port to a single host.
    os.environ["PET_MASTER_PORT"] = port
    torch_distributed.MASTER_PORT = port
    training.MASTER_PORT = port
    environment.num_gpus = lambda: 0 if _has_neurons(_instance_type()) else devices
    environment.num_neurons = lambda instance_type: devices if _has_neurons(instance_type) else 0
    # The toolkit imports PyTorch only to tell its version: seconds per host, on shared cores.
    training._set_torch_version_environment = _tell_torch_version
    trainer.train()


def _tell_torch_version() -> None:
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
