"""How tables of measurements spell what a configuration is made of, and what they leave unsaid.

A word that is not known is handed on as it is, so that the error that it leads to names it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from orchestration.catalog import accelerators, instance, instances
from orchestration.planning.model.configuration import Optimizer

_YES = frozenset({"1", "1.0", "true", "yes", "y", "on"})
_NO = frozenset({"", "0", "0.0", "false", "no", "n", "off", "none"})

_WORDS_OF_MAKERS = re.compile(
    r"nvidia|tesla|geforce|aws|amd|sxm\d*|hbm\d?e?|nvlink|tensor ?core|gpus?|\d+ ?gi?b"
)
_GIB = re.compile(r"(?<!\d)(\d+) ?gi?b|-(\d{2,3})$", re.IGNORECASE)

_SAME_CHIP: Mapping[str, str] = {
    "a800": "a100", "h800": "h100", "gh200": "h200", "trainium": "trn1", "trainium1": "trn1",
    "trainium2": "trn2", "a100pcie": "a100",
}  # fmt: skip
"""Chips that differ from a known one in links or memory alone."""

LINKS_GB_PER_S: Mapping[str, float] = {"a800": 200.0, "h800": 200.0, "a100pcie": 31.5}
"""One way: NVLink of chips whose links were cut for export, and PCIe 4 x16."""

_MEMORY_GIB: Mapping[str, float] = {
    "a100-40": 40, "a100-80": 80, "a10g": 24, "b200": 180, "b300": 288, "gb200": 186,
    "gb300": 288, "h100": 80, "h100-96hbm2e": 96, "h200": 141, "l4": 24, "l40s": 48, "t4": 16,
    "trn1": 32, "trn2": 96, "v100": 16,
}  # fmt: skip
"""GiB of a chip as its maker sells it."""

_NETWORK_GBPS = 3200.0
"""Of accelerators that no instance type has: those newer than them."""

_PRECISIONS: Mapping[str, str] = {
    "bfloat16": "bf16", "bf16mixed": "bf16", "ampbf16": "bf16", "mixedbf16": "bf16",
    "mixed": "bf16", "amp": "bf16", "bf16amp": "bf16", "": "bf16",
    "bf16true": "bf16_true", "bf16pure": "bf16_pure",
    "float16": "fp16", "half": "fp16", "16": "fp16", "16mixed": "fp16", "fp16mixed": "fp16",
    "ampfp16": "fp16", "mixedfp16": "fp16", "fp16amp": "fp16", "float32": "fp32", "32": "fp32",
    "32true": "fp32", "single": "fp32", "tf32": "fp32",
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
    """What a cell of yes or no says; ``None``: neither, or nothing."""
    word = cell.lower()
    return True if word in _YES else False if word and word in _NO else None


def plain(cell: str) -> str:
    """A word in small letters and digits alone."""
    return re.sub(r"[^a-z0-9]", "", cell.lower())


def accelerator(cell: str, memory_gib: float | None) -> str:
    """The key of an accelerator, from whatever a table calls it.

    >>> accelerator("A100-SXM4-80GB", None), accelerator("H100 SXM", 80)
    ('a100-80', 'h100')
    """
    name = cell.lower()
    known = accelerators()
    if name in known or name in _MEMORY_GIB:
        return name
    if name.startswith("ml.") and (found := instance(name)) is not None:
        return found.accelerator or cell
    if said := _GIB.search(name):
        memory_gib = float(said[1] or said[2])
    bare = chip(name)
    bare = _SAME_CHIP.get(bare, bare)
    if chip(name) == "gh200" and memory_gib is not None and memory_gib <= 96:
        return "h100"  # GH200 with HBM3
    if bare == "a100":
        return "a100-40" if memory_gib is not None and memory_gib <= 40 else "a100-80"
    return bare if bare in _MEMORY_GIB else cell


def chip(cell: str) -> str:
    """A chip's name without its maker, its socket and its memory: ``a800``."""
    name = re.sub(r"-\d{2,3}$", "", cell.lower())
    return re.sub(r"[^a-z0-9]", "", _WORDS_OF_MAKERS.sub("", re.sub(r"_", " ", name)))


def memory_gib(cell: str, key: str) -> float | None:
    """GiB of a chip that a table gives no memory of: as its name says, or as it is sold."""
    said = _GIB.search(cell) if cell.lower() not in _MEMORY_GIB else None
    return float(said[1] or said[2]) if said else _MEMORY_GIB.get(key)


def network_gbps(key: str) -> float:
    """Gbit/s of a node that a table does not give: of AWS's fastest with the accelerator."""
    speeds = (one.network_gbps for one in instances().values() if one.accelerator == key)
    return max((one for one in speeds if one is not None), default=_NETWORK_GBPS)


def precision(cell: str) -> str:
    """The precision that a table means; bf16 where it says nothing.

    Recipes of fp8 that differ in their scaling factors (delayed, current, by blocks) are all fp8.
    """
    word = plain(cell)
    if word in _PRECISIONS:
        return _PRECISIONS[word]
    if "fp8" in word and not word.startswith("mx") and cell.lower() != "fp8_rowwise":
        return "mxfp8" if "mx" in word else "fp8"
    return cell.lower()


def optimizer(cell: str) -> Optimizer:
    """What an optimizer keeps: of Lion one moment, of Adafactor next to nothing, else two."""
    word = plain(cell)
    if "lion" in word or "momentum" in word or "muon" in word:
        return "momentum"
    return "sgd" if word.startswith(("sgd", "adafactor")) else "adamw"


def recomputed(cell: str) -> str:
    """What a table says is computed again, in the words of ``benchmarks.csv``."""
    return _RECOMPUTED.get(plain(cell), cell.lower())


def attention(cell: str) -> str | None:
    """The kernel that a cell names: one of a generation, ``flash``, ``unfused``; or nothing."""
    word = plain(cell)
    if found := re.fullmatch(r"(?:fa|flash|flashattn|flashattention)?v?([23])(?:\.\d)?", word):
        return f"flash{found[1]}"
    if word in ("fa1", "flash1", "flashattention1", "triton"):
        return "flash1"
    if word in ("cudnn", "transformerengine"):
        return "flash3"
    said = flag(cell)
    if said is None:
        known = word.startswith(("sdpa", "xformers", "mem", "fa", "flash"))
        return "flash" if known else "unfused" if word in ("eager", "naive", "math") else None
    return "flash" if said else "unfused"


def sharded(cell: str, framework: str) -> str:
    """The stage of ZeRO that a cell names; what the framework's name tells where it is empty."""
    word = plain(cell or framework)
    if found := re.search(r"(?:zero|stage)([0123])", word):
        return found[1]
    if not cell:
        return "3" if "fsdp" in word else "0"
    return str(_SHARDED[word]) if word in _SHARDED else cell


def offloaded(cell: str) -> str:
    """What a cell says lives in the host's memory."""
    return "" if flag(cell) is False else cell.lower()
