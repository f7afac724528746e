"""The strategies as users write them, and as the in-container toolkit reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias, assert_never

from pydantic import BaseModel, ConfigDict, Field

from orchestration.expressions import Json
from orchestration.strategies.support import ACCELERATORS, SMDDP_INSTANCES, instance_family


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class TorchDistributed(_Model):
    """``torchrun`` on every host: DDP, FSDP, DeepSpeed, on GPU, CPU or Trainium.

    https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-training-options.html
    """

    kind: Literal["torch_distributed"] = "torch_distributed"
    processes_per_host: int | None = Field(default=None, ge=1, le=128)
    """Processes on each host of a CPU cluster; there the toolkit starts one unless told. On
    accelerators it always starts one per device, and this must not be given."""


class SMDDP(_Model):
    """SageMaker's data parallel library: AllReduce over EFA, started by ``mpirun``.

    https://docs.aws.amazon.com/sagemaker/latest/dg/data-parallel.html
    """

    kind: Literal["smddp"] = "smddp"
    custom_mpi_options: str = Field(default="", max_length=2000)
    """Further ``mpirun`` options, e.g. ``-verbose -x NCCL_DEBUG=VERSION``."""


class MPI(_Model):
    """``mpirun`` on the first host, processes on all of them; Horovod runs over it too."""

    kind: Literal["mpi"] = "mpi"
    processes_per_host: int = Field(default=1, ge=1, le=128)
    custom_mpi_options: str = Field(default="", max_length=2000)
    """Further ``mpirun`` options. Repeating one that the toolkit sets aborts ``mpirun``."""


class NoStrategy(_Model):
    """The script is started once on every host as it is."""

    kind: Literal["none"] = "none"


Strategy: TypeAlias = Annotated[
    TorchDistributed | SMDDP | MPI | NoStrategy, Field(discriminator="kind")
]
"""How training is distributed, told apart by ``kind``."""


def hyperparameters(strategy: Strategy, instance_type: object) -> Mapping[str, object]:
    """The toolkit's hyperparameters, not yet JSON-encoded, as the SDK 2.257 sends them."""
    match strategy:
        case TorchDistributed(processes_per_host=processes):
            sent: dict[str, object] = {
                "sagemaker_torch_distributed_enabled": True,
                "sagemaker_instance_type": instance_type,
            }
            if processes is not None:
                # sagemaker-training 5.1.4 reads the process count of every runner from this key.
                sent["sagemaker_mpi_num_of_processes_per_host"] = processes
            return sent
        case SMDDP(custom_mpi_options=options):
            return {
                "sagemaker_distributed_dataparallel_enabled": True,
                "sagemaker_instance_type": instance_type,
                "sagemaker_distributed_dataparallel_custom_mpi_options": options,
            }
        case MPI(processes_per_host=processes, custom_mpi_options=options):
            return {
                "sagemaker_mpi_enabled": True,
                "sagemaker_mpi_num_of_processes_per_host": processes,
                "sagemaker_mpi_custom_mpi_options": options,
            }
        case NoStrategy():
            return {}
        case _:
            assert_never(strategy)


def problems(strategy: Strategy, instance_type: object, instance_count: object) -> list[str]:
    """Why a strategy can't work on a cluster, as far as the cluster is known before the run."""
    if not isinstance(instance_type, str):
        return []
    found = []
    match strategy:
        case SMDDP():
            if instance_type not in SMDDP_INSTANCES:
                found.append(
                    f"SMDDP does not run on {instance_type}; it runs on "
                    f"{', '.join(SMDDP_INSTANCES)} (or use torch_distributed)"
                )
            if instance_count == 1:
                found.append("SMDDP needs at least 2 instances; on one use torch_distributed")
        case TorchDistributed(processes_per_host=processes) if processes is not None:
            if instance_family(instance_type) in ACCELERATORS:
                found.append(
                    f"processes_per_host can't be chosen on {instance_type}: the toolkit starts "
                    "one process per accelerator; leave it out"
                )
        case MPI() if instance_family(instance_type).startswith("trn"):
            found.append(f"MPI does not run on {instance_type}: use torch_distributed on Trainium")
        case TorchDistributed() | MPI() | NoStrategy():
            pass
        case _:
            assert_never(strategy)
    return found


def world(strategy: Strategy, instance_count: int, devices: int | None) -> Json:
    """Training processes in all, ``None`` where the devices per host are not known."""
    match strategy:
        case TorchDistributed(processes_per_host=processes):
            per_host = processes or devices
        case MPI(processes_per_host=processes):
            per_host = processes
        case SMDDP():
            per_host = devices
        case NoStrategy():
            per_host = 1
        case _:
            assert_never(strategy)
    return None if per_host is None else instance_count * per_host
