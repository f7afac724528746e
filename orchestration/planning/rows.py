"""Rows of published measurements as configurations.

The columns are those of ``benchmarks.csv``. Measured columns are never read here: a row with them
emptied gives the same configuration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from orchestration.errors import near
from orchestration.planning.configuration import (
    Configuration,
    ConfigurationError,
    Kernels,
    Machine,
    Offload,
    Precision,
    Recompute,
)
from orchestration.planning.prediction import predict
from orchestration.planning.published import published
from orchestration.planning.recipes import recipe
from orchestration.planning.shapes import ModelShape

Row = Mapping[str, str]

COLUMNS = (
    "id", "source_id", "source", "table", "date", "framework", "model", "arch", "params_b",
    "n_layers", "hidden", "n_heads", "n_kv_heads", "ffn_hidden", "gated_mlp", "vocab",
    "tied_embeddings", "seq_len", "dims_source", "gpu", "gpu_mem_gib", "n_gpus", "gpus_per_node",
    "internode_gbps_per_node", "precision", "optimizer", "tp", "sequence_parallel", "pp", "vpp",
    "cp", "ep", "dp", "zero_stage", "shard_degree", "cpu_offload", "global_batch_seqs",
    "micro_batch_seqs", "grad_accum", "act_ckpt", "flash_attn", "compile", "tflops_per_gpu",
    "tflops_kind", "tokens_s_per_gpu", "step_time_s", "mfu_pct", "hfu_pct", "mem_gib_per_gpu",
    "mem_kind", "oom", "noise", "notes",
)  # fmt: skip

_CORES_PER_CHIP = {"trn1": 2, "trn2": 8}

_CHIPS_PER_NODE = 8
"""Where a row does not say."""

_OMNIPATH = ("Omni-Path", "OPA", "JZ")
"""What notes call the network of the Jean Zay cluster."""

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
    """A row with every column; one that the file lacks is as empty."""
    return {column: (row.get(column) or "").strip() for column in COLUMNS}


def configuration(row: Row) -> Configuration:
    """The configuration of a row.

    Raises:
        ConfigurationError: a column that the prediction needs is empty or not understood.
    """
    framework = recipe(row["framework"], _year(row["date"]))
    recompute, share = _recompute(row)
    tensor, pipeline, context = _int(row, "tp"), _int(row, "pp"), _int(row, "cp")
    machine = _machine(row)
    data = max(1, machine.devices // (tensor * pipeline * context))
    micro = _int(row, "micro_batch_seqs")
    accumulation = _number(row, "grad_accum", 1)
    zero = _int(row, "zero_stage", 0)
    flash = row["flash_attn"] == "1" or framework.always_flash
    found = Configuration(
        model=_model(row),
        machine=machine,
        sequence=_int(row, "seq_len", None),
        global_batch=int(_number(row, "global_batch_seqs", micro * accumulation * data)),
        micro_batch=micro,
        precision=_precision(row),
        tensor=tensor,
        sequence_parallel=row["sequence_parallel"] == "1" or framework.sequence_parallel,
        pipeline=pipeline,
        interleave=_int(row, "vpp"),
        context=context,
        expert=_int(row, "ep"),
        zero=zero,
        shard=_int(row, "shard_degree", 0) or None,
        offload=_offload(row),
        recompute=recompute,
        recompute_share=share,
        attention=framework.flash if flash else "unfused",
        kernels=_kernels(row, framework.kernels),
        loss=framework.loss,
        dropout=framework.dropout,
        overlap_data=framework.overlap_sharded if zero >= 3 else framework.overlap_data,
        overlap_tensor=framework.overlap_tensor,
        gradient_bytes=2 if row["precision"] == "bf16_pure" else framework.gradient_bytes,
        trainable=_trainable(row),
        deepspeed=framework.deepspeed,
    )
    return _recomputing(found) if row["act_ckpt"] == "unknown" else found


def _recomputing(c: Configuration) -> Configuration:
    """The configuration with as many layers recomputed as it needs to fit, in quarters.

    Megatron's recipes for speed recompute nothing once attention is fused, but to fit.
    """
    for quarters in range(5):
        share = quarters / 4
        tried = replace(c, recompute="full", recompute_share=share) if quarters else c
        if predict(tried).fits:
            return tried
    return c


def _year(date: str) -> int | None:
    """The year of ``2024-05-09``, or of NVIDIA's containers: ``24.07``."""
    if found := re.match(r"20\d\d|2\d(?=\.\d\d)", date):
        return int(found[0]) + (0 if len(found[0]) == 4 else 2000)
    return None


def _machine(row: Row) -> Machine:
    chips = _int(row, "n_gpus", None)
    cores = _CORES_PER_CHIP.get(row["gpu"], 1)
    return Machine(
        accelerator=row["gpu"],
        devices=chips * cores,
        devices_per_node=_int(row, "gpus_per_node", _CHIPS_PER_NODE) * cores,
        device_memory_gib=_number(row, "gpu_mem_gib") / cores,
        network_gbps=_number(row, "internode_gbps_per_node", 0) or None,
        omnipath=any(word in row["notes"] for word in _OMNIPATH),
    )


def _model(row: Row) -> ModelShape:
    if not row["hidden"]:
        return published(row["model"])
    llama = row["arch"] == "llama" or row["gated_mlp"] == "1"
    positions = 0 if llama else _int(row, "seq_len", None)
    heads = _int(row, "n_heads", None)
    return _shape(
        _int(row, "n_layers", None),
        _int(row, "hidden", None),
        heads,
        _int(row, "n_kv_heads", heads),
        _int(row, "ffn_hidden", None),
        row["gated_mlp"] == "1",
        _int(row, "vocab", None),
        row["tied_embeddings"] == "1",
        llama,
        positions,
        row["arch"] == "bert",
    )


@lru_cache(maxsize=512)
def _shape(
    layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, gated: bool, vocabulary: int,
    tied: bool, rotary: bool, positions: int, encoder: bool,
) -> ModelShape:  # fmt: skip
    return ModelShape(
        kind="encoder" if encoder else "decoder",
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        ffn=ffn,
        gated=gated,
        vocabulary=vocabulary,
        tied_embeddings=tied,
        rotary=rotary,
        positions=positions,
    )


def _precision(row: Row) -> Precision:
    return row["precision"]  # type: ignore[return-value]  # Configuration checks it


def _recompute(row: Row) -> tuple[Recompute, float]:
    if every := re.fullmatch(r"selective_layer(\d+)", row["act_ckpt"]):
        return "full", 1 / int(every[1])
    found = _RECOMPUTE.get(row["act_ckpt"])
    if found is None:
        raise ConfigurationError(
            f"act_ckpt is {row['act_ckpt']!r}{near(row['act_ckpt'], filter(None, _RECOMPUTE))}"
        )
    return found


def _kernels(row: Row, framework: Kernels) -> Kernels:
    return "compiled" if row["compile"] == "1" else framework


def _offload(row: Row) -> Offload:
    match row["cpu_offload"]:
        case "" | "0":
            return "none"
        case "optimizer":
            return "optimizer"
        case _:
            return "all"


def _trainable(row: Row) -> int | None:
    if row["arch"] != "lora":
        return None
    digits = "".join(x for x in row["optimizer"] if x.isdigit())
    return int(digits) if digits else None


def _int(row: Row, column: str, default: int | None = 1) -> int:
    return int(_number(row, column, default))


def _number(row: Row, column: str, default: float | None = None) -> float:
    """A cell's number; `default` for an empty cell, an error where there is no default."""
    cell = row[column]
    if not cell and default is not None:
        return default
    try:
        return float(cell)
    except ValueError as error:
        raise ConfigurationError(f"{column} is {cell!r}, not a number") from error
