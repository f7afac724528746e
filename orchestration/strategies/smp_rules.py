"""Rules between the parameters of SageMaker's model parallel libraries.

Rules of version 1: ``validate_mp_config`` of the SageMaker Python SDK 2.257.6 (fw_utils.py), the
library's own (smdistributed-modelparallel 1.13, backend/config.yaml), and
https://docs.aws.amazon.com/sagemaker/latest/dg/model-parallel.html.
Rules of version 2:
https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-model-parallel-v2-reference.html.
Read 2026-11-21.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.strategies.smp import SMPv1, SMPv2
from orchestration.strategies.strategy import Strategy
from orchestration.strategies.use import Finding

_TENSORFLOW_ONLY = ("contiguous", "horovod", "load_partition", "partition_file")
_PYTORCH_ONLY = (
    *("pipeline_parallel_degree", "memory_weight", "active_microbatches", "deterministic_server"),
    *("skip_tracing", "ddp", "ddp_port", "ddp_dist_backend", "tensor_parallel_degree"),
    *("prescaled_batch", "shard_optimizer_state", "fp16", "fp16_params", "bf16"),
    *("offload_activations", "activation_loading_horizon", "sharded_data_parallel_degree"),
    *("sdp_reduce_bucket_size", "sdp_param_persistence_threshold", "sdp_max_live_parameters"),
    *("sdp_hierarchical_allgather", "sdp_gradient_clipping"),
)


def own_rules(strategy: Strategy, framework: str | None) -> Iterator[Finding]:
    """Find problems among a strategy's parameters, independent of its setting.

    ``framework`` is ``pytorch``, ``tensorflow`` or, if unknown, ``None``.
    """
    match strategy:
        case SMPv1():
            yield from _rules_of_v1(strategy, framework)
        case SMPv2():
            yield from _rules_of_v2(strategy)
        case _:
            pass


def _rules_of_v1(smp: SMPv1, framework: str | None) -> Iterator[Finding]:
    yield from _extra(smp)
    yield from _partitioning(smp)
    yield from _data_parallelism(smp)
    yield from _sharding(smp)
    yield from _without_effect(smp)
    for name in {"pytorch": _TENSORFLOW_ONLY, "tensorflow": _PYTORCH_ONLY}.get(framework or "", ()):
        if getattr(smp, name) is not None:
            other = "TensorFlow" if framework == "pytorch" else "PyTorch"
            yield _doubt(name, f"is documented for {other} only; leave it out")


def _rules_of_v2(smp: SMPv2) -> Iterator[Finding]:
    yield from _extra(smp)
    context, sharded = smp.context_parallel_degree or 1, smp.hybrid_shard_degree
    if sharded and context > sharded:
        yield _wrong(
            "context_parallel_degree",
            f"{context} is more than hybrid_shard_degree ({sharded}), which holds its ranks; raise "
            "that one",
        )
    if not sharded and context > 1:
        yield _doubt(
            "context_parallel_degree",
            "must be at most hybrid_shard_degree, which is missing; add it",
        )
    if smp.activation_loading_horizon is not None and smp.sm_activation_offloading is False:
        yield _doubt("activation_loading_horizon", "has no effect: sm_activation_offloading is off")


def _extra(smp: SMPv1 | SMPv2) -> Iterator[Finding]:
    for name in smp.extra_parameters:
        if name in type(smp).model_fields and name not in smp.own_fields:
            yield _wrong(f"extra_parameters.{name}", f"has a field of its own: {name}; use that")


def _partitioning(smp: SMPv1) -> Iterator[Finding]:
    if None not in (smp.partitions, smp.pipeline_parallel_degree) and (
        smp.partitions != smp.pipeline_parallel_degree
    ):
        yield _wrong(
            "partitions",
            f"is the older name of pipeline_parallel_degree, which is "
            f"{smp.pipeline_parallel_degree}; leave it out",
        )
    if (smp.active_microbatches or 1) > (smp.microbatches or 1):
        yield _wrong(
            "active_microbatches",
            f"{smp.active_microbatches} is more than microbatches ({smp.microbatches or 1}); raise "
            "that one, or leave it out",
        )
    parts = smp.pipeline_parallel_degree or smp.partitions
    if smp.auto_partition is False and smp.default_partition is None:
        yield _wrong(
            "default_partition",
            "is needed where auto_partition is false: the partition of modules that the script "
            "does not place; give 0, or leave auto_partition out",
        )
    if smp.default_partition is not None and smp.default_partition >= (parts or 1):
        yield _wrong(
            "default_partition",
            f"{smp.default_partition} is none of the {parts or 1} partitions, which count from 0; "
            "lower it, or raise partitions or pipeline_parallel_degree",
        )
    if smp.load_partition and smp.partition_file is None:
        yield _wrong("load_partition", "needs partition_file, the file to load")


def _data_parallelism(smp: SMPv1) -> Iterator[Finding]:
    if smp.ddp and smp.horovod:
        yield _wrong("horovod", "does not go with ddp; keep ddp (PyTorch) or horovod (TensorFlow)")
    for name in ("ddp_port", "ddp_dist_backend"):
        if getattr(smp, name) is not None and smp.ddp is None:
            yield _wrong(name, "is for DistributedDataParallel; set ddp: true with it")
    if (smp.tensor_parallel_degree or 1) > 1 and not smp.ddp:
        yield _wrong(
            "tensor_parallel_degree", "above 1 needs DistributedDataParallel; set ddp: true"
        )
    if (smp.sharded_data_parallel_degree or 1) > 1 and not smp.ddp:
        yield _doubt(
            "sharded_data_parallel_degree",
            "is documented together with DistributedDataParallel; set ddp: true",
        )
    if smp.prescaled_batch and smp.optimize == "memory":
        yield _wrong("prescaled_batch", "goes with optimize: speed only; set that")


def _sharding(smp: SMPv1) -> Iterator[Finding]:
    sharded = (smp.sharded_data_parallel_degree or 1) > 1
    if sharded and (smp.pipeline_parallel_degree or smp.partitions or 1) > 1:
        yield _wrong(
            "sharded_data_parallel_degree",
            "does not go with pipeline parallelism; leave out pipeline_parallel_degree and "
            "partitions, or set it to 1",
        )
    if sharded and smp.shard_optimizer_state:
        yield _wrong(
            "shard_optimizer_state",
            "does not go with sharded data parallelism, which shards that state too; leave it out",
        )
    if sharded and (smp.tensor_parallel_degree or 1) > 1:
        yield _doubt(
            "tensor_parallel_degree",
            "goes with sharded data parallelism from version 1.15 of the library on (PyTorch "
            "1.13.1); set one of them to 1 before that",
        )
    if smp.bf16 and (smp.fp16 or smp.fp16_params):
        yield _wrong("bf16", "does not go with fp16 or fp16_params; choose one")
    if smp.bf16 and not sharded:
        yield _doubt(
            "bf16",
            "is documented with sharded data parallelism only; set sharded_data_parallel_degree "
            "above 1, or use fp16",
        )


def _without_effect(smp: SMPv1) -> Iterator[Finding]:
    if (smp.sharded_data_parallel_degree or 1) == 1:
        for name in SMPv1.model_fields:
            if name.startswith("sdp_") and getattr(smp, name) is not None:
                yield _doubt(name, "has no effect without sharded_data_parallel_degree above 1")
    if smp.activation_loading_horizon is not None and not smp.offload_activations:
        yield _doubt("activation_loading_horizon", "has no effect without offload_activations")
    if smp.prescaled_batch and (smp.tensor_parallel_degree or 1) == 1:
        yield _doubt("prescaled_batch", "has no effect without tensor_parallel_degree above 1")
    pipelined = (smp.pipeline_parallel_degree or smp.partitions or 1) > 1
    if smp.offload_activations and pipelined and (smp.microbatches or 1) == 1:
        yield _doubt(
            "offload_activations", "saves memory with microbatches above 1 only; raise microbatches"
        )


def _wrong(name: str, message: str) -> Finding:
    return Finding(f"strategy.{name}", message, True)


def _doubt(name: str, message: str) -> Finding:
    return Finding(f"strategy.{name}", message, False)
