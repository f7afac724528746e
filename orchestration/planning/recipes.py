"""What a training framework does where a configuration does not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from orchestration.planning.configuration import Attention, Kernels, Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Defaults of one framework; the fields are those of a configuration."""

    flash: Attention = "flash2"
    """The kernel that it means by flash attention."""
    always_flash: bool = False
    """Whether it has that kernel even where a table does not say so."""
    kernels: Kernels = "eager"
    loss: Loss = "eager"
    dropout: bool = False
    overlap_data: bool = True
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
        flash="unfused", gradient_bytes=4,
        why="transformers' ESM had eager attention only",
    ),
    "litgpt": Recipe(why="scaled_dot_product_attention"),
    "deepspeed": Recipe(
        flash="flash3", kernels="fused", loss="chunked",
        why="Liger's fused kernels; current attention kernels",
    ),
    "megatron-lm": Recipe(
        kernels="fused", dropout=True, overlap_data=False, gradient_bytes=4,
        why="2021: fused softmax, GeLU and dropout; gradients reduced after the backward pass",
    ),
    "megatron-deepspeed": Recipe(
        kernels="fused", dropout=True, overlap_data=False, deepspeed=True,
        why="as Megatron-LM of 2021",
    ),
    "nemo": Recipe(
        flash="flash3", kernels="fused", overlap_tensor=True,
        why="Transformer Engine: cuDNN's attention, fused kernels, overlapped collectives",
    ),
    "megatron-bridge": Recipe(
        flash="flash3", kernels="fused", overlap_tensor=True, why="as NeMo",
    ),
    "neuronx": Recipe(
        flash="flash2", always_flash=True, kernels="fused", overlap_tensor=True,
        sequence_parallel=True,
        why="the compiler fuses elementwise work and keeps tiles of scores on the chip; NxD's "
        "recipes turn sequence parallelism on",
    ),
})  # fmt: skip

_DEFAULT = Recipe(why="PyTorch as it comes: scaled_dot_product_attention, eager kernels")


def recipe(framework: str) -> Recipe:
    """The defaults of a framework, by the start of its name; PyTorch's for one not known.

    >>> recipe("composer+FSDP").flash
    'flash1'
    """
    name = framework.lower()
    starts = [known for known in _RECIPES if name.startswith(known)]
    return _RECIPES[max(starts, key=len)] if starts else _DEFAULT
