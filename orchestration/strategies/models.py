"""The strategies as users write them, each with its own fields.

The two libraries for model parallelism are in :mod:`.smp`.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field


class Model(BaseModel):
    """The base of every strategy: frozen, and unknown fields are refused."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")


ProcessesPerHost: TypeAlias = Annotated[int, Field(ge=1, le=1024)]
"""Training processes on each host."""

MpiOptions: TypeAlias = Annotated[str, Field(max_length=2000)]
"""Further options of ``mpirun``, split at white space: quotes have no meaning.

An option that the toolkit sets itself must not be repeated: ``mpirun`` aborts. ``--NCCL_DEBUG
INFO`` is the toolkit's own word for the variable; ``-x NAME=value`` sets any other."""

GroupName: TypeAlias = Annotated[str, Field(min_length=1, max_length=64)]
"""The name of an instance group of a heterogeneous cluster."""


class TorchDistributed(Model):
    """``torchrun`` on every host: DDP, FSDP, DeepSpeed, on GPU, CPU or Trainium.

    On a heterogeneous cluster each instance group trains by itself.
    https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-training-options.html
    https://pytorch.org/docs/stable/elastic/run.html
    """

    kind: Literal["torch_distributed"] = "torch_distributed"
    processes_per_host: ProcessesPerHost | None = None
    """``None``: the toolkit starts one process per accelerator, or one without accelerators."""


class SMDDP(Model):
    """SageMaker's data parallel library: collectives made for AWS's network.

    https://docs.aws.amazon.com/sagemaker/latest/dg/data-parallel.html
    """

    kind: Literal["smddp"] = "smddp"
    launcher: Literal["mpirun", "torchrun"] = "mpirun"
    """``mpirun``: AllReduce and AllGather. ``torchrun``: AllGather (FSDP, DeepSpeed); the script
    chooses the library by ``init_process_group("smddp")``."""
    custom_mpi_options: MpiOptions | None = None
    """With ``mpirun``, e.g. ``-verbose -x NCCL_DEBUG=VERSION``."""
    instance_group: GroupName | None = None
    """On a heterogeneous cluster: the group that trains, with ``mpirun``."""


class PyTorchDDP(Model):
    """PyTorch's DistributedDataParallel started by ``mpirun``.

    The older way; AWS maintains ``torch_distributed``. For PyTorch, the SageMaker SDK sends it like
    SMDDP; for Hugging Face under a separate name, without options.
    https://sagemaker.readthedocs.io/en/v2.257.1/frameworks/pytorch/using_pytorch.html#distributed-pytorch-training
    """

    kind: Literal["pytorchddp"] = "pytorchddp"
    custom_mpi_options: MpiOptions | None = None
    """With the ``pytorch`` framework."""
    instance_group: GroupName | None = None
    """On a heterogeneous cluster: the group that trains."""


class _OverMPI(Model):
    processes_per_host: ProcessesPerHost | None = None
    """``None``: the toolkit starts one process per accelerator, or one without accelerators."""
    custom_mpi_options: MpiOptions | None = None
    """E.g. ``-x OMP_NUM_THREADS=8 --NCCL_DEBUG INFO``."""
    instance_group: GroupName | None = None
    """On a heterogeneous cluster: the group that trains; the script runs once on other hosts."""


class MPI(_OverMPI):
    """``mpirun`` on the first host, processes on all of them.

    https://sagemaker.readthedocs.io/en/v2.257.1/frameworks/tensorflow/using_tf.html#training-with-horovod
    """

    kind: Literal["mpi"] = "mpi"


class Horovod(_OverMPI):
    """Horovod, started by ``mpirun``: the script calls ``hvd.init()``.

    The container receives the same as from ``mpi``; the kind documents what the script does.
    https://horovod.readthedocs.io/en/stable/mpi.html
    """

    kind: Literal["horovod"] = "horovod"


class ParameterServer(Model):
    """Parameter servers beside the workers, one of each on every host (TensorFlow, MXNet).

    https://sagemaker.readthedocs.io/en/v2.257.1/frameworks/tensorflow/using_tf.html#training-with-parameter-servers
    """

    kind: Literal["parameter_server"] = "parameter_server"


class MultiWorkerMirrored(Model):
    """TensorFlow's MultiWorkerMirroredStrategy: the toolkit writes ``TF_CONFIG`` on every host.

    https://sagemaker.readthedocs.io/en/v2.257.1/frameworks/tensorflow/using_tf.html#training-with-multi-worker-mirrored-strategy
    """

    kind: Literal["multi_worker_mirrored"] = "multi_worker_mirrored"


class NoStrategy(Model):
    """The script is started once on every host, without a launcher."""

    kind: Literal["none"] = "none"
