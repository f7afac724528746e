"""SageMaker's libraries for model parallelism: version 1 over mpirun, version 2 over torchrun.

Only parameters that a user sets are sent, as the JSON of one hyperparameter (``mp_parameters``). A
parameter that a library has and this model lacks goes into ``extra_parameters``.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from orchestration.strategies.models import GroupName, Model, MpiOptions, ProcessesPerHost

INTERNAL_PARAMETERS = frozenset(
    [
        "_fp32_grad_accumulation",
        "_match_weights",
        "_sharded_data_parallelism_config",
        "_shard_offloaded_activations",
        "herring",
    ]
)
"""Parameters of version 1 that the library calls internal; ``extra_parameters`` accepts them."""

Degree: TypeAlias = Annotated[int, Field(ge=1)]
Parameter: TypeAlias = bool | int | float | str

_NOT_PARAMETERS = frozenset(
    ["kind", "processes_per_host", "custom_mpi_options", "instance_group", "extra_parameters"]
)


class _Parameters(Model):
    extra_parameters: dict[str, Parameter] = {}
    """Parameters of the library without a field in this model; sent unchanged."""

    own_fields: ClassVar[frozenset[str]] = _NOT_PARAMETERS

    def parameters(self) -> dict[str, Parameter]:
        """Return the parameters that the user set, by the library's names."""
        own = {
            name: value
            for name in type(self).model_fields
            if name not in self.own_fields and (value := getattr(self, name)) is not None
        }
        return {**own, **self.extra_parameters}


class SMPv1(_Parameters):
    """SageMaker's model parallel library, version 1: pipeline and tensor parallelism over mpirun.

    Version 1.15 for PyTorch 2.0.0 is the last; newer code uses ``smp_v2`` or FSDP. A version in
    parentheses is the release that added a parameter.
    https://docs.aws.amazon.com/sagemaker/latest/dg/model-parallel.html
    https://sagemaker.readthedocs.io/en/v2.199.0/api/training/smd_model_parallel_general.html
    The library refuses parameters that it does not know, and values that its bounds exclude.
    """

    kind: Literal["smp_v1"] = "smp_v1"
    processes_per_host: ProcessesPerHost | None = None
    """One per GPU at most; ``None``: one per GPU."""
    custom_mpi_options: MpiOptions | None = None
    """Further options of ``mpirun``."""
    instance_group: GroupName | None = None
    """On a heterogeneous cluster: the group that trains."""

    partitions: Degree | None = None
    """Partitions of the model: TensorFlow, and PyTorch with a library before 1.6."""
    pipeline_parallel_degree: Degree | None = None
    """Devices that a pipeline runs over: PyTorch (1.6), where it is the same as ``partitions``.
    Default 1."""
    microbatches: Degree | None = None
    """Parts that a batch is split into; the batch size must be a multiple. Default 1."""
    active_microbatches: Degree | None = None
    """Microbatches under way at a time, at most ``microbatches``. Default ``partitions`` + 2, or as
    many as there are (1.3)."""
    pipeline: Literal["simple", "interleaved", "_only_forward"] | None = None
    """The schedule. Default ``interleaved``."""
    optimize: Literal["memory", "speed"] | None = None
    """The goal of the partitioning."""
    placement_strategy: (
        Literal["cluster", "spread", "DPT", "DTP", "PDT", "PTD", "TDP", "TPD"] | None
    ) = None
    """The order of ranks: a permutation of (D)ata, (P)ipeline, (T)ensor, the last
    over the nearest devices. ``cluster`` is ``DPT`` and the default, ``spread`` is ``TPD``."""
    auto_partition: bool | None = None
    """Let the library place the modules. Default true."""
    default_partition: Annotated[int, Field(ge=0)] | None = None
    """Partition of modules that the script does not place; needed without ``auto_partition``."""
    load_partition: bool | None = None
    """TensorFlow: load the partitioning of an earlier job from ``partition_file``."""
    partition_file: str | None = None
    """TensorFlow: file of the partitioning for ``load_partition``."""
    contiguous: bool | None = None
    """TensorFlow: keep each partition connected. Default true."""
    memory_weight: Annotated[float, Field(ge=0, le=1)] | None = None
    """Weight of memory against computation in the partitioning, from 0 to 1."""
    deterministic_server: bool | None = None
    """Run requests in the same order on all data parallel ranks (1.3)."""
    skip_tracing: bool | None = None
    """Skip the first trace, for models that are too large for the host's memory (1.6)."""
    delayed_parameter_initialization: bool | None = None
    """Create parameters when they are placed, to save the host's memory."""
    static_mode: bool | None = None
    """Exchange no requests in the pipeline if every step is like the previous one."""
    fast_mode: bool | None = None
    """Pass tensors between the modules of a pipeline directly."""

    ddp: bool | None = None
    """PyTorch: data parallelism between the replicas, by DistributedDataParallel."""
    ddp_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """PyTorch: port at which the replicas meet."""
    ddp_dist_backend: str | None = None
    """``auto`` (SMDDP's collectives if possible) or ``nccl`` (1.13)."""
    horovod: bool | None = None
    """TensorFlow: data parallelism between the replicas, by Horovod."""

    tensor_parallel_degree: Degree | None = None
    """Devices that a module is split over (1.6). More than one needs ``ddp``."""
    prescaled_batch: bool | None = None
    """The script gives the same batch to all ranks of a tensor parallel group (1.6); with
    ``optimize: speed``. Without it each of them reads samples of its own."""
    tensor_parallel_seed: Annotated[int, Field(ge=0)] | None = None
    """Seed of the tensor parallel modules. Default 0."""
    shard_optimizer_state: bool | None = None
    """Split the optimizer's state over the data parallel ranks (1.6)."""
    fp16: bool | None = None
    """Train in FP16 (1.10)."""
    fp16_params: bool | None = None
    """Initialise the parameters of distributed modules in FP16 (1.6); ``fp16`` came after it."""
    bf16: bool | None = None
    """Train in BF16; with sharded data parallelism only (1.11)."""
    offload_activations: bool | None = None
    """Keep checkpointed activations in host memory (1.6); needs microbatches."""
    activation_loading_horizon: Annotated[int, Field(ge=0)] | None = None
    """Pipeline tasks by which offloaded activations return early. Default 4 (1.6)."""
    task_level_activation_loading_horizon: Degree | None = None
    """Pipeline tasks by which their return is queued early. Default 4."""
    checkpoint_attentions: bool | None = None
    """Checkpoint the attention scores; without a pipeline."""

    sharded_data_parallel_degree: Degree | None = None
    """GPUs that parameters, gradients and optimizer state are split over (1.11)."""
    sdp_reduce_bucket_size: Degree | None = None
    """Elements of a gradient bucket. Default 5e8."""
    sdp_param_persistence_threshold: Annotated[int, Field(ge=0)] | None = None
    """Tensors with fewer elements stay whole on each GPU. Default 1e6."""
    sdp_max_live_parameters: Degree | None = None
    """Most parameters that are whole at a time. Default 1e9."""
    sdp_hierarchical_allgather: bool | None = None
    """Gather within each host first. Default true."""
    sdp_gradient_clipping: Annotated[float, Field(ge=0)] | None = None
    """The L2 norm that gradients are clipped to. Default 1.0."""


class SMPv2(_Parameters):
    """SageMaker's model parallel library, version 2: FSDP with more, over torchrun.

    https://docs.aws.amazon.com/sagemaker/latest/dg/model-parallel-v2.html
    https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-model-parallel-v2-reference.html
    """

    kind: Literal["smp_v2"] = "smp_v2"

    hybrid_shard_degree: Annotated[int, Field(ge=0)] | None = None
    """GPUs that the model is sharded over; the rest hold replicas. 0, the default: as set for FSDP
    in the script, or with tensor parallelism all GPUs."""
    sm_activation_offloading: bool | None = None
    """Offload activations in the library's own way, not PyTorch's. Default true."""
    activation_loading_horizon: Degree | None = None
    """Layers whose offloaded inputs are in device memory at a time. Default 2."""
    fsdp_cache_flush_warnings: bool | None = None
    """Warn when PyTorch's allocator flushes its cache, which costs speed. Default true."""
    allow_empty_shards: bool | None = None
    """Allow shards without elements if a tensor does not divide evenly. Default false."""
    tensor_parallel_degree: Degree | None = None
    """Devices that a module is split over. Default 1."""
    context_parallel_degree: Degree | None = None
    """Devices that a sequence is split over; at most ``hybrid_shard_degree``. Default 1."""
    expert_parallel_degree: Degree | None = None
    """Devices that the experts of a mixture are split over. Default 1."""
    random_seed: int | None = None
    """Seed of the distributed modules; each rank adds its own number."""
