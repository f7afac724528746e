"""Rows of published measurements as configurations.

The columns are those of ``benchmarks.csv``. This module never reads measured columns, so that
predictions can't depend on them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from orchestration.catalog import accelerators
from orchestration.errors import near
from orchestration.planning.calibration import spellings
from orchestration.planning.calibration.cells import integer, number
from orchestration.planning.calibration.row_models import model, trainable
from orchestration.planning.cost.prediction import USABLE, predict
from orchestration.planning.model.configuration import (
    Attention,
    Configuration,
    ConfigurationError,
    Dropout,
    Kernels,
    Machine,
    Offload,
    Precision,
    Recompute,
)
from orchestration.planning.model.recipes import Recipe, engine_settings, kernels_of, recipe

Row = Mapping[str, str]

COLUMNS = (
    "id", "source_id", "source", "table", "date", "framework", "model", "arch", "params_b",
    "n_layers", "hidden", "n_heads", "n_kv_heads", "ffn_hidden", "gated_mlp", "vocab",
    "tied_embeddings", "seq_len", "dims_source", "gpu", "gpu_mem_gib", "n_gpus", "gpus_per_node",
    "internode_gbps_per_node", "internode_collective_gbps", "vcpus_per_node", "host_threads",
    "precision", "optimizer", "tp", "sequence_parallel", "pp", "vpp",
    "cp", "ep", "dp", "zero_stage", "shard_degree", "cpu_offload", "global_batch_seqs",
    "micro_batch_seqs", "grad_accum", "act_ckpt", "flash_attn", "compile", "norm_kernel",
    "softmax_kernel",
    "unpacking", "routing", "dropout", "adapter_dropout", "adapter_targets",
    "reduce_bucket",
    "tflops_per_gpu",
    "tflops_kind", "tokens_s_per_gpu", "step_time_s", "mfu_pct", "hfu_pct", "mem_gib_per_gpu",
    "mem_kind", "oom", "noise", "notes",
)  # fmt: skip

_CHIPS_PER_NODE = {"trn1": 16, "trn2": 16, "gb200": 4, "gb300": 4}
"""Chips per node, for rows that do not say; 8 for all others."""

_FUSED_SINCE = 2023
"""Year from which PyTorch's own attention is a fused kernel (2.0)."""

_RECOMPUTE: Mapping[str, tuple[Recompute, float]] = {
    "": ("none", 1.0),
    "none": ("none", 1.0),
    "unknown": ("none", 1.0),
    "selective": ("attention", 1.0),
    "selective_op": ("operators", 1.0),
    "selective_frac": ("full", 0.5),
    "full": ("full", 1.0),
}


def complete(row: Mapping[str, str | None]) -> Row:
    """Return a row with every column; those missing from the file are empty."""
    return {column: (row.get(column) or "").strip() for column in COLUMNS}


def configuration(row: Row) -> Configuration:
    """Return the configuration of a row.

    Raises:
        ConfigurationError: a required cell is empty or can't be read.
    """
    since = year(row["date"])
    framework = recipe(row["framework"], since)
    recompute, share = _recompute(row)
    tensor, pipeline, context = (integer(row, name, 1) for name in ("tp", "pp", "cp"))
    machine = _machine(row, tensor * pipeline * context)
    data = max(1, machine.devices // max(1, tensor * pipeline * context))
    micro = integer(row, "micro_batch_seqs", _micro_batch(row, data))
    accumulation = number(row, "grad_accum", 1)
    shape, precision, zero = model(row), _precision(row), _zero(row)
    result = Configuration(
        model=shape,
        machine=machine,
        sequence=integer(row, "seq_len"),
        global_batch=int(number(row, "global_batch_seqs", micro * accumulation * data)),
        micro_batch=micro,
        precision=precision,
        tensor=tensor,
        sequence_parallel=spellings.flag(row["sequence_parallel"]) is True
        or framework.sequence_parallel,
        pipeline=pipeline,
        interleave=integer(row, "vpp", 1),
        context=context,
        expert=integer(row, "ep", 1),
        zero=zero,
        shard=integer(row, "shard_degree", 0) or None,
        offload=_offload(row),
        pageable="pageable" in row["cpu_offload"],
        recompute=recompute,
        recompute_share=share,
        attention=_attention(row, framework, since),
        kernels=kernels_of(framework, _kernels(row)),
        fused_norms=row["norm_kernel"] in ("fused", "cast"),
        cast_norms=row["norm_kernel"] == "cast",
        whole_graph="graph" in row["compile"],
        fused_experts="experts" in row["compile"],
        trainable=trainable(row, shape),
        adapter_targets="attention" if row["adapter_targets"] == "attention" else "all",
        adapter_dropout=spellings.flag(row["adapter_dropout"]) is True,
        frozen_bits=spellings.frozen_bits(row["precision"]),
        consecutive_experts=row["routing"] == "consecutive",
        fresh_gate=row["routing"] == "fresh",
        separate_unpacking=row["unpacking"] == "operators",
        optimizer=spellings.optimizer(row["optimizer"]),
        reduce_bucket=number(row, "reduce_bucket", 5e8),
        **engine_settings(framework, zero=zero, precision=precision),
    )
    if row["softmax_kernel"] == "fused":
        result = replace(result, softmax="fused")
    if row["dropout"]:
        result = replace(result, dropout=_dropout(row["dropout"].lower()))
    return _recomputing(result) if row["act_ckpt"].lower() == "unknown" else result


def _recomputing(c: Configuration) -> Configuration:
    """Recompute as few layers as the configuration needs to fit, in quarters.

    Megatron's recipes for speed use fused attention, and recompute only to fit.
    """
    for quarters in range(5):
        share = quarters / 4
        candidate = replace(c, recompute="full", recompute_share=share) if quarters else c
        memory = predict(candidate).memory
        if memory.need <= USABLE * candidate.machine.device_memory_gib:
            return candidate
    return c


def year(date: str) -> int | None:
    """Return the year of a date, ``2024-05-09``, or of an NVIDIA container, ``24.07``."""
    if match := re.match(r"20\d\d|2\d(?=\.\d\d)", date):
        return int(match[0]) + (0 if len(match[0]) == 4 else 2000)
    return None


def cores_per_chip(row: Row) -> int:
    """Return the devices in each chip that a row counts: more than one on Trainium."""
    accelerator = accelerators().get(_accelerator(row))
    return 1 if accelerator is None else accelerator.devices_per_chip


def _accelerator(row: Row) -> str:
    return spellings.accelerator(row["gpu"], number(row, "gpu_mem_gib", 0) or None)


def _machine(row: Row, replica: int) -> Machine:
    key, cores = _accelerator(row), cores_per_chip(row)
    devices = integer(row, "dp") * replica if row["dp"] and not row["n_gpus"] else None
    chips = integer(row, "n_gpus", None if devices is None else -(-devices // cores))
    per_node = integer(row, "gpus_per_node", _CHIPS_PER_NODE.get(key, 8))
    network = number(row, "internode_gbps_per_node", 0) or None
    if network is None and chips > per_node:
        network = spellings.network_gbps(key)
    return Machine(
        accelerator=key,
        devices=chips * cores,
        devices_per_node=per_node * cores,
        device_memory_gib=number(row, "gpu_mem_gib", spellings.memory_gib(row["gpu"], key)) / cores,
        network_gbps=network,
        collective_gbps=number(row, "internode_collective_gbps", 0) or None,
        vcpus=integer(row, "vcpus_per_node", 0) or None,
        host_threads=integer(row, "host_threads", 0) or None,
        interconnect_gb_per_s=spellings.LINKS_GB_PER_S.get(spellings.chip(row["gpu"])),
    )


def _micro_batch(row: Row, data: int) -> int:
    """Return the part of the batch for one replica and one accumulation, at least 1."""
    if not (row["global_batch_seqs"] and row["grad_accum"]):
        return 1
    parts = number(row, "grad_accum") * data
    return max(1, round(number(row, "global_batch_seqs") / parts)) if parts > 0 else 1


def _zero(row: Row) -> int:
    cell = spellings.sharded(row["zero_stage"], row["framework"])
    return integer({**row, "zero_stage": cell}, "zero_stage")


def _attention(row: Row, framework: Recipe, year: int | None) -> Attention:
    """Return the attention kernel; for an empty cell, what the framework used at that time."""
    kernel = spellings.attention(row["flash_attn"])
    if kernel is None and row["flash_attn"]:
        raise ConfigurationError(f"flash_attn: expected 1 or 0, got {row['flash_attn']!r}")
    if kernel in ("flash1", "flash2", "flash3"):
        return kernel  # type: ignore[return-value]  # one of these
    recent = year is None or year >= _FUSED_SINCE
    likely = kernel is None and framework.flash_likely and recent
    flash = kernel == "flash" or likely or framework.always_flash
    return framework.flash if flash else "unfused"


def _precision(row: Row) -> Precision:
    return spellings.precision(row["precision"])  # type: ignore[return-value]  # Configuration checks it


def _recompute(row: Row) -> tuple[Recompute, float]:
    word = spellings.recomputed(row["act_ckpt"])
    if interval := re.fullmatch(r"selective_layer([1-9]\d*)", word):
        return "full", 1 / int(interval[1])
    if word not in _RECOMPUTE:
        cell = row["act_ckpt"]
        raise ConfigurationError(
            f"act_ckpt: unknown value {cell!r}{near(cell, filter(None, _RECOMPUTE))}"
        )
    return _RECOMPUTE[word]


def _kernels(row: Row) -> Kernels:
    cell = row["compile"].lower()
    return "compiled" if spellings.flag(cell) or "compile" in cell else "eager"


def _dropout(word: str) -> Dropout:
    if word not in ("none", "hidden", "all"):
        raise ConfigurationError(f"dropout: expected none, hidden or all, got {word!r}")
    return word  # type: ignore[return-value]  # one of these


def _offload(row: Row) -> Offload:
    match spellings.offloaded(row["cpu_offload"]).removesuffix(", pageable"):
        case "":
            return "none"
        case "optimizer" | "optim" | "optimizer_states":
            return "optimizer"
        case _:
            return "all"
