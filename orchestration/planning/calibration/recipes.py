"""What a training framework does where a configuration does not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from orchestration.planning.model.configuration import Attention, Kernels, Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Defaults of one framework; the fields are those of a configuration."""

    flash: Attention = "flash2"
    """The kernel that it means by flash attention."""
    always_flash: bool = False
    """Whether it has that kernel even where a table does not say so."""
    flash_unsaid: bool = True
    """Whether it is likely to have it where a table says nothing, from 2023 on."""
    kernels: Kernels = "eager"
    loss: Loss = "eager"
    dropout: bool = False
    overlap_data: bool = True
    overlap_sharded: bool = True
    """The same of FSDP."""
    overlap_tensor: bool = False
    gradient_bytes: int = 0
    deepspeed: bool = False
    sequence_parallel: bool = False
    why: str


_RECIPES: Mapping[str, Recipe] = MappingProxyType({
    "composer": Recipe(
        flash="flash1",
        loss="fused",
        gradient_bytes=4,
        why="llm-foundry's default attention of 2023 is Triton's kernel of the generation of "
        "FlashAttention 1, and its loss is flash-attn's fused one; Composer's FSDP mixed "
        "precision DEFAULT reduces in fp32",
    ),
    "torchtitan": Recipe(why="scaled_dot_product_attention; fp32 reduction", gradient_bytes=4),
    "pytorch fsdp": Recipe(why="scaled_dot_product_attention; bf16 reduction"),
    "hf trainer": Recipe(
        gradient_bytes=4, overlap_sharded=False, flash_unsaid=False,
        why="attention in plain operators; autocast: gradients in fp32; without a wrapping policy "
        "FSDP has one unit, the model",
    ),
    "litgpt": Recipe(why="scaled_dot_product_attention"),
    "deepspeed": Recipe(deepspeed=True, why="PyTorch's kernels, DeepSpeed's engine"),
    "deepspeed zero-3+offload+liger": Recipe(
        flash="flash3", kernels="fused", loss="chunked",
        why="Liger's fused kernels; current attention kernels",
    ),
    "megatron-lm": Recipe(
        kernels="fused", dropout=True, overlap_data=False, gradient_bytes=4, flash_unsaid=False,
        why="2021: fused softmax, GeLU and dropout; gradients reduced after the backward pass",
    ),
    "megatron-deepspeed": Recipe(
        kernels="fused", dropout=True, overlap_data=False, deepspeed=True, flash_unsaid=False,
        why="as Megatron-LM of 2021",
    ),
    "nemo": Recipe(
        flash="flash3", kernels="fused", overlap_tensor=True,
        why="Transformer Engine: cuDNN's attention, fused kernels, overlapped collectives",
    ),
    "megatron-core": Recipe(
        flash="flash3", kernels="fused", overlap_tensor=True, why="as NeMo",
    ),
    "megatron-bridge": Recipe(
        flash="flash3", kernels="fused", overlap_tensor=True, why="as NeMo",
    ),
    "gpt-neox": Recipe(
        kernels="fused", dropout=True, overlap_data=False, deepspeed=True, flash_unsaid=False,
        why="Megatron-DeepSpeed's kernels and engine",
    ),
    "neuronx": Recipe(
        flash="flash2", always_flash=True, kernels="fused", overlap_tensor=True,
        sequence_parallel=True,
        why="the compiler fuses elementwise work and keeps tiles of scores on the chip; NxD's "
        "recipes turn sequence parallelism on",
    ),
})  # fmt: skip

_DEFAULT = Recipe(why="PyTorch as it comes: scaled_dot_product_attention, eager kernels")


_CORE_SINCE = 2023
"""The year from which Megatron-LM means Megatron-Core."""


def recipe(framework: str, year: int | None = None) -> Recipe:
    """The defaults of a framework of some year, by the start of its name.

    One that is not known is taken for PyTorch as it comes.

    >>> recipe("composer+FSDP").flash
    'flash1'
    """
    name = framework.lower()
    starts = [known for known in _RECIPES if name.startswith(known)]
    if not starts:
        return _DEFAULT
    found = max(starts, key=len)
    if found == "megatron-lm" and year is not None and year >= _CORE_SINCE:
        found = "megatron-core"
    return _RECIPES[found]
