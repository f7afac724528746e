"""Spellings that tables of measurements use for the parts of a configuration.

An unknown word is returned unchanged, so that the error it causes later names it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from orchestration.catalog import accelerators, instance, instances
from orchestration.planning.model.configuration import Optimizer

_YES = frozenset({"1", "1.0", "true", "yes", "y", "on"})
_NO = frozenset({"", "0", "0.0", "false", "no", "n", "off", "none"})

_MAKERS_WORDS = re.compile(
    r"nvidia|tesla|geforce|aws|amd|sxm\d*|hbm\d?e?|nvlink|tensor ?core|gpus?|\d+ ?gi?b"
)
_GIB = re.compile(r"(?<!\d)(\d+) ?gi?b|-(\d{2,3})$", re.IGNORECASE)

_SAME_CHIP: Mapping[str, str] = {
    "a800": "a100", "h800": "h100", "gh200": "h200", "trainium": "trn1", "trainium1": "trn1",
    "trainium2": "trn2", "a100pcie": "a100",
}  # fmt: skip
"""Chips that differ from a known one only in links or memory."""

LINKS_GB_PER_S: Mapping[str, float] = {"a800": 200.0, "h800": 200.0, "a100pcie": 31.5}
"""Bandwidth one way: NVLink of chips with fewer links for export, and PCIe 4 x16."""

_MEMORY_GIB: Mapping[str, float] = {
    "a100-40": 40, "a100-80": 80, "a10g": 24, "b200": 180, "b300": 288, "gb200": 186,
    "gb300": 288, "h100": 80, "h100-96hbm2e": 96, "h200": 141, "l4": 24, "l40s": 48, "t4": 16,
    "trn1": 32, "trn2": 96, "v100": 16,
}  # fmt: skip
"""Memory of a chip as it is sold."""

_NETWORK_GBPS = 3200.0
"""Network of a node whose accelerator is too new for any instance type in the catalog."""

_PRECISIONS: Mapping[str, str] = {
    "bfloat16": "bf16", "bf16mixed": "bf16", "ampbf16": "bf16", "mixedbf16": "bf16",
    "mixed": "bf16", "amp": "bf16", "bf16amp": "bf16", "": "bf16",
    "bf16true": "bf16_true", "bf16pure": "bf16_pure",
    "float16": "fp16", "half": "fp16", "16": "fp16", "16mixed": "fp16", "fp16mixed": "fp16",
    "ampfp16": "fp16", "mixedfp16": "fp16", "fp16amp": "fp16", "float32": "fp32", "32": "fp32",
    "32true": "fp32", "single": "fp32", "tf32": "fp32",
    "nf4": "bf16_true", "nf4double": "bf16_true", "int4": "bf16_true", "int8": "bf16_true",
    "fp8rowwise": "fp8_rowwise", "fp8mx": "mxfp8", "fp4": "nvfp4", "mxfp4": "nvfp4",
}  # fmt: skip

_RECOMPUTED: Mapping[str, str] = {
    "off": "none", "no": "none", "false": "none", "0": "none",
    "1": "full", "on": "full", "yes": "full", "true": "full", "all": "full", "block": "full",
    "uniform": "full", "fullblock": "full", "fulluniform": "full",
    "attention": "selective", "attn": "selective", "coreattn": "selective",
    "coreattention": "selective", "selectiveattn": "selective",
    "op": "selective_op", "ops": "selective_op", "selectiveops": "selective_op",
    "selectiveop": "selective_op",
    "sac": "selective_op", "partial": "selective_frac",
}  # fmt: skip

_SHARDED: Mapping[str, int] = {
    "ddp": 0, "none": 0, "no": 0, "os": 1, "distributedoptimizer": 1, "shardgradop": 2,
    "fsdp": 3, "fsdp2": 3, "hsdp": 3, "fullshard": 3, "hybridshard": 3,
}  # fmt: skip


def flag(cell: str) -> bool | None:
    """Return a yes-or-no cell as a boolean; ``None``: it is empty or neither."""
    word = cell.lower()
    return True if word in _YES else False if word and word in _NO else None


def plain(cell: str) -> str:
    """Return the lower-case letters and digits of a cell."""
    return re.sub(r"[^a-z0-9]", "", cell.lower())


def accelerator(cell: str, memory_gib: float | None) -> str:
    """Return the key of an accelerator by any of its names.

    >>> accelerator("A100-SXM4-80GB", None), accelerator("H100 SXM", 80)
    ('a100-80', 'h100')
    """
    name = cell.lower()
    known = accelerators()
    if name in known or name in _MEMORY_GIB:
        return name
    if name.startswith("ml.") and (machine := instance(name)) is not None:
        return machine.accelerator or cell
    if size := _GIB.search(name):
        memory_gib = float(size[1] or size[2])
    bare = chip(name)
    bare = _SAME_CHIP.get(bare, bare)
    if chip(name) == "gh200" and memory_gib is not None and memory_gib <= 96:
        return "h100"  # GH200 with HBM3
    if bare == "a100":
        return "a100-40" if memory_gib is not None and memory_gib <= 40 else "a100-80"
    return bare if bare in _MEMORY_GIB else cell


def chip(cell: str) -> str:
    """Return a chip's name without maker, socket and memory: ``a800``."""
    name = re.sub(r"-\d{2,3}$", "", cell.lower())
    return re.sub(r"[^a-z0-9]", "", _MAKERS_WORDS.sub("", re.sub(r"_", " ", name)))


def memory_gib(cell: str, key: str) -> float | None:
    """Return the GiB in a chip's name, or else those that it is sold with."""
    size = _GIB.search(cell) if cell.lower() not in _MEMORY_GIB else None
    return float(size[1] or size[2]) if size else _MEMORY_GIB.get(key)


def network_gbps(key: str) -> float:
    """Return the Gbit/s of AWS's fastest instance with the accelerator."""
    speeds = (
        machine.network_gbps or 0.0
        for machine in instances().values()
        if machine.accelerator == key
    )
    return max(speeds, default=0.0) or _NETWORK_GBPS


def precision(cell: str) -> str:
    """Return the precision that a cell means; bf16 if it is empty.

    All fp8 recipes count as fp8, whatever their scaling factors (delayed, current, by blocks).
    """
    word = plain(cell)
    if word in _PRECISIONS:
        return _PRECISIONS[word]
    if "fp8" in word and not word.startswith("mx") and cell.lower() != "fp8_rowwise":
        return "mxfp8" if "mx" in word else "fp8"
    return cell.lower()


def frozen_bits(cell: str) -> float:
    """Return the bits per frozen weight that a cell means; 0: it says nothing of frozen weights.

    Every 64 or 128 weights share a scale of 32 or 16 bits; ``nf4_double`` keeps it in 8 bits, and
    another of 32 bits for 256 of those.
    """
    return {"nf4": 4.5, "nf4double": 4.127, "int4": 4.25, "int8": 8.25}.get(plain(cell), 0.0)


def optimizer(cell: str) -> Optimizer:
    """Return the optimizer by its state: Lion has one moment, Adafactor almost none, others two."""
    word = plain(cell)
    if "8bit" in word:
        return "adamw_8bit"
    if "lion" in word or "momentum" in word or "muon" in word:
        return "momentum"
    return "sgd" if word.startswith(("sgd", "adafactor")) else "adamw"


def recomputed(cell: str) -> str:
    """Return the kind of recomputation in the words of ``benchmarks.csv``."""
    return _RECOMPUTED.get(plain(cell), cell.lower())


def attention(cell: str) -> str | None:
    """Return the kernel that a cell names: of a generation, ``flash``, ``unfused``, or unknown."""
    word = plain(cell)
    if match := re.fullmatch(r"(?:fa|flash|flashattn|flashattention)?v?([23])(?:\.\d)?", word):
        return f"flash{match[1]}"
    if word in ("fa1", "flash1", "flashattention1", "triton"):
        return "flash1"
    if word in ("cudnn", "transformerengine"):
        return "flash3"
    enabled = flag(cell)
    if enabled is None:
        known = word.startswith(("sdpa", "xformers", "mem", "fa", "flash"))
        return "flash" if known else "unfused" if word in ("eager", "naive", "math") else None
    return "flash" if enabled else "unfused"


def sharded(cell: str, framework: str) -> str:
    """Return the ZeRO stage that a cell names, or an empty cell's framework implies."""
    word = plain(cell or framework)
    if match := re.search(r"(?:zero|stage)([0123])", word):
        return match[1]
    if not cell:
        return "3" if "fsdp" in word else "0"
    return str(_SHARDED[word]) if word in _SHARDED else cell


def offloaded(cell: str) -> str:
    """Return what a cell says is offloaded to the host; empty: nothing."""
    return "" if flag(cell) is False else cell.lower()
