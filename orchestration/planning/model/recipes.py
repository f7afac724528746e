"""Recipes: what training frameworks do by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Literal, TypedDict

from orchestration.planning.model.configuration import (
    Activation,
    Attention,
    Dropout,
    Kernels,
    Loss,
    Positions,
    Precision,
    Softmax,
)

Engine = Literal[
    "pytorch fsdp", "torchtitan", "composer", "hf trainer", "litgpt", "deepspeed",
    "deepspeed zero-3+offload+liger",
    "megatron-core", "megatron-bridge", "nemo", "neuronx",
]  # fmt: skip
"""Training engines whose defaults are known, in the spelling of published tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Defaults of one framework; most fields are those of a configuration."""

    flash: Attention = "flash2"
    """Kernel that the framework calls flash attention."""
    always_flash: bool = False
    """The framework always uses that kernel."""
    flash_likely: bool = True
    """It probably uses that kernel from 2023 on, unless a table says otherwise."""
    kernels: Kernels = "eager"
    loss: Loss = "eager"
    dropout: Dropout = "none"
    overlap_data: bool = True
    overlap_sharded: bool = True
    """`overlap_data` for FSDP."""
    overlap_tensor: bool = False
    gradient_bytes: int = 0
    reduced_bytes: int = 0
    whole_reduction: bool = False
    broadcast_weights: bool = False
    whole_gradients: bool = False
    kept_gradients: bool = False
    whole_transfers: bool = False
    separate_projections: bool = False
    whole_logits: bool = False
    whole_embedding: bool = False
    recomputed_head: bool = False
    even_modules: bool = False
    kept_logits: bool = False
    update_bytes: int = 0
    wide_ends: bool = False
    separate_ends: bool = False
    stops_early: bool = False
    softmax: Softmax = "operators"
    activation: Activation = "kernel"
    positions: Positions = "operators"
    update_traffic: float = 1.0
    joined_dispatch: bool = False
    padded_experts: bool = False
    deepspeed: bool = False
    autocast: bool = False
    """It trains in 16 bits by ``torch.autocast``, unless FSDP casts the weights."""
    sequence_parallel: bool = False
    source: str
    """The origin of these defaults."""


_FOREACH = 2.8
_ONE_BY_ONE = 2.5
"""Bytes that PyTorch's AdamW moves over those of its fused kernel, with ``foreach`` (its default
from 2.0 on) and tensor by tensor: 92 and 80 for states in fp32, of 32.5; 51 and 40 in bf16, of 19
(measured like what `cost.traffic` counts)."""

_TRAINER = Recipe(
    gradient_bytes=4, overlap_sharded=False, flash_likely=False, whole_gradients=True,
    autocast=True, softmax="wide",
    source="attention in plain operators, its softmax in fp32; autocast: gradients in fp32; "
    "without a wrapping policy FSDP has one unit, the model; Accelerate accumulates under "
    "no_sync",
)  # fmt: skip

_RECIPES: Mapping[str, Recipe] = MappingProxyType({
    "composer": Recipe(
        flash="flash1",
        loss="fused",
        gradient_bytes=4, update_traffic=_ONE_BY_ONE,
        source="llm-foundry's default attention of 2023 is Triton's kernel of the generation of "
        "FlashAttention 1, and its loss is flash-attn's fused one; Composer's FSDP mixed "
        "precision DEFAULT reduces in fp32; its "
        "DecoupledAdamW updates tensor by tensor (optim/decoupled_weight_decay.py)",
    ),
    "torchtitan": Recipe(
        gradient_bytes=4, stops_early=True,
        source="scaled_dot_product_attention; fp32 reduction; PyTorch's checkpoint_wrapper, "
        "non-reentrant unless told otherwise",
    ),
    "pytorch fsdp": Recipe(
        stops_early=True, update_traffic=_FOREACH,
        source="scaled_dot_product_attention; bf16 reduction; CheckpointImpl.NO_REENTRANT "
        "(fms-fsdp, policies/ac_handler.py), and torch.optim.AdamW as it is",
    ),
    "hf trainer": _TRAINER,
    "hf trainer gpt2": replace(
        _TRAINER, activation="tanh", source="the same; gelu_new in transformers' activations.py"
    ),
    "automodel": Recipe(
        flash="flash2", kernels="fused", loss="plain", update_bytes=2,
        gradient_bytes=4, whole_gradients=True, joined_dispatch=True, stops_early=True,
        source="examples/llm_benchmark: Transformer Engine's linear layers, norms and rotary "
        "positions, attention by flex or by cuDNN, MaskedCrossEntropy with fp32_upcast: false, "
        "and torch.optim.Adam on bf16 parameters, whose step keeps a root of one moment; "
        "components/moe: fsdp_mixin.py reduces gradients with the last micro-batch only, in fp32; "
        "layers.py dispatches by DeepEP, parallelizer.py takes PyTorch's checkpoint_wrapper",
    ),
    "kempnerforge": Recipe(
        gradient_bytes=4, whole_gradients=True, loss="plain", whole_logits=True,
        whole_embedding=True, padded_experts=True, stops_early=True,
        source="scaled_dot_product_attention; training/grad.py turns gradient synchronisation of "
        "FSDP2 off until the last micro-batch; distributed/parallel.py reduces in fp32, "
        "and recomputes by CheckpointImpl.NO_REENTRANT; "
        "distributed/tensor_parallel.py gathers the logits, which training/loss.py leaves in bf16, "
        "and keeps the embedding whole; distributed/setup.py has a mesh for FSDP on one rank, too; "
        "fused AdamW; model/moe.py pads experts to the fullest one",
    ),
    "internevo": Recipe(
        flash="flash1", loss="fused", positions="kernel", update_traffic=_ONE_BY_ONE,
        update_bytes=12, kept_gradients=True, whole_reduction=True, broadcast_weights=True,
        source="solver/optimizer/hybrid_zero_optim.py and fsdp_optimizer.py: gradients copied to "
        "fp32; torch.optim.AdamW without fused kernels takes two more arrays; the former reduces "
        "gradients to every rank (reduce_tensor without dst_rank), and broadcasts weights rank by "
        "rank after the update (broadcast_params; overlap_sync_param=False in configs/7B_sft.py); "
        "model/embedding.py and loss.py take flash-attn's kernels, of its version 1.0.5 and for "
        "PyTorch 1.13 by doc/en/install.md of 2023-11, whose AdamW updates tensor by tensor",
    ),
    "aa-scaling": Recipe(
        loss="copied", kept_gradients=True, whole_logits=True, overlap_data=False,
        reduced_bytes=4, whole_reduction=True,
        whole_transfers=True, separate_projections=True, kept_logits=True, softmax="masked",
        recomputed_head=True, even_modules=True,
        source="Aleph-Alpha/scaling, transformer/model: the output layer gathers its logits, and "
        "losses/cross_entropy.py casts them to fp32 and takes the largest for the accuracy; "
        "core/optimizer: optimizer.py reduces gradients after the last backward pass, allreduce.py "
        "whole ones, as copies in fp32; core/nn: mlp.py has two column-parallel layers; in "
        "parallel_module, communicator.py sends tensors as they are, pipeline_partitioning.py "
        "counts modules, parallel_module.py recomputes each of them, and buffers.py keeps a "
        "stage's outputs of two micro-batches; masked_softmax.py clones scores, fills masked ones, "
        "and takes the softmax",
    ),
    "hf+peft": Recipe(
        wide_ends=True, softmax="wide",
        source="PEFT's prepare_model_for_kbit_training casts what is not quantised to fp32, "
        "unless GPTQ quantised the rest",
    ),
    "hf+peft+qwen": Recipe(
        wide_ends=True, softmax="wide", positions="cast",
        source="the same; modeling_qwen.py casts queries and keys for flash-attn's kernel",
    ),
    "dle bert": Recipe(source="plain PyTorch, Apex's LAMB"),
    "dle bart": Recipe(
        loss="plain",
        source="PyTorch/LanguageModeling/BART of DeepLearningExamples: pretrain.py makes the model "
        "one of 16 bits without autocast (allreduce_post_accumulation_half_precision); Apex's LAMB",
    ),
    "torchtune": Recipe(
        stops_early=True,
        source="scaled_dot_product_attention; logits cast to fp32 for the loss; weights and "
        "Adam's moments in bf16; PyTorch's checkpoint_wrapper",
    ),
    "torchtune+chunked": Recipe(
        loss="fused", stops_early=True,
        source="modules/loss: the loss casts an eighth of the logits at a time to fp32",
    ),
    "torchtune+chunked+sharded": Recipe(
        loss="fused", separate_ends=True, stops_early=True,
        source="the same with custom_sharded_layers: ['tok_embeddings', 'output']",
    ),
    "litgpt": Recipe(source="scaled_dot_product_attention"),
    "deepspeed": Recipe(deepspeed=True, source="PyTorch's kernels, DeepSpeed's engine"),
    "deepspeed+qwen": Recipe(
        loss="plain", deepspeed=True, positions="cast",
        source="the same; modeling_qwen.py gives the loss its logits of 16 bits, which no autocast "
        "widens within DeepSpeed's engine, and casts queries and keys for flash-attn's kernel",
    ),
    "deepspeed zero-3+offload+liger": Recipe(
        flash="flash3", kernels="fused", loss="chunked",
        source="Liger's fused kernels; current attention kernels",
    ),
    "megatron-lm": Recipe(
        loss="parallel", kept_gradients=True,
        kernels="fused", dropout="all", overlap_data=False, gradient_bytes=4, flash_likely=False,
        source="2021: fused softmax, GeLU and dropout; gradients reduced after the backward pass",
    ),
    "megatron-deepspeed": Recipe(
        loss="parallel", kept_gradients=True,
        kernels="fused", dropout="all", overlap_data=False, deepspeed=True, flash_likely=False,
        source="as Megatron-LM of 2021",
    ),
    "nemo": Recipe(
        loss="parallel", kept_gradients=True,
        flash="flash3", kernels="fused", overlap_tensor=True,
        source="Transformer Engine: cuDNN's attention, fused kernels, overlapped collectives",
    ),
    "nemo vit": Recipe(
        flash_likely=False, kernels="fused", softmax="cast", dropout="hidden", activation="biased",
        source="conf/training/vit of NeMo-Framework-Launcher sets neither flash attention nor "
        "Transformer Engine, but query_key_layer_scaling, a hidden dropout of 0.1 and "
        "bias_activation_fusion: False; Apex's FusedScaleMaskSoftmax has no kernel without a mask",
    ),
    "megatron-core": Recipe(
        loss="parallel", kept_gradients=True,
        flash="flash3", kernels="fused", overlap_tensor=True, source="as NeMo",
    ),
    "megatron-bridge": Recipe(
        loss="parallel", kept_gradients=True,
        flash="flash3", kernels="fused", overlap_tensor=True, source="as NeMo",
    ),
    "gpt-neox": Recipe(
        loss="parallel", kept_gradients=True,
        kernels="fused", dropout="all", overlap_data=False, deepspeed=True, flash_likely=False,
        source="Megatron-DeepSpeed's kernels and engine",
    ),
    "neuronx": Recipe(
        loss="parallel", kept_gradients=True,
        flash="flash2", always_flash=True, kernels="fused", overlap_data=False,
        sequence_parallel=True,
        source="the compiler fuses elementwise work and keeps tiles of scores on the chip; NxD's "
        "recipes turn sequence parallelism on; the runtime's guide says that collectives of tensor "
        "parallelism are not overlapped (neuron-runtime/explore/compute-comm-overlap.rst), and "
        "NxD's training loop ends a graph between the backward pass and the optimizer, whose ZeRO "
        "1 reduces and gathers (examples/training/llama/tp_zero1_llama_hf_pretrain)",
    ),
    "tensorflow": Recipe(source="updates by one kernel for each tensor (ResourceApplyAdam)"),
    "mxnet": Recipe(source="updates by one kernel for each tensor (adam_update)"),
})  # fmt: skip

_DEFAULT = Recipe(
    update_traffic=_FOREACH,
    source="plain PyTorch: scaled_dot_product_attention, eager kernels, torch.optim.AdamW as it is",
)


class EngineSettings(TypedDict):
    """Settings of a configuration that follow from its engine."""

    autocast: bool
    loss: Loss
    dropout: Dropout
    overlap_data: bool
    overlap_tensor: bool
    gradient_bytes: int
    reduced_bytes: int
    whole_reduction: bool
    broadcast_weights: bool
    whole_gradients: bool
    kept_gradients: bool
    whole_transfers: bool
    separate_projections: bool
    whole_logits: bool
    whole_embedding: bool
    recomputed_head: bool
    even_modules: bool
    kept_logits: bool
    update_bytes: int
    wide_ends: bool
    separate_ends: bool
    stops_early: bool
    softmax: Softmax
    activation: Activation
    positions: Positions
    update_traffic: float
    joined_dispatch: bool
    padded_experts: bool
    deepspeed: bool


@cache
def engine_settings(recipe: Recipe, *, zero: int, precision: Precision) -> EngineSettings:
    """Return what an engine sets beside the layout.

    The only place that says so: published rows and the search's own configurations agree.
    """
    return EngineSettings(
        autocast=recipe.autocast and zero < 3 and precision in ("bf16", "fp16"),
        loss=recipe.loss,
        dropout=recipe.dropout,
        overlap_data=recipe.overlap_sharded if zero >= 3 else recipe.overlap_data,
        overlap_tensor=recipe.overlap_tensor,
        gradient_bytes=2 if precision == "bf16_pure" else recipe.gradient_bytes,
        reduced_bytes=recipe.reduced_bytes,
        whole_reduction=recipe.whole_reduction or recipe.deepspeed,
        broadcast_weights=recipe.broadcast_weights,
        whole_gradients=recipe.whole_gradients,
        kept_gradients=recipe.kept_gradients,
        whole_transfers=recipe.whole_transfers,
        separate_projections=recipe.separate_projections,
        whole_logits=recipe.whole_logits,
        whole_embedding=recipe.whole_embedding,
        recomputed_head=recipe.recomputed_head,
        even_modules=recipe.even_modules,
        kept_logits=recipe.kept_logits,
        update_bytes=recipe.update_bytes,
        wide_ends=recipe.wide_ends,
        separate_ends=recipe.separate_ends,
        stops_early=recipe.stops_early,
        softmax=recipe.softmax,
        activation=recipe.activation,
        positions=recipe.positions,
        update_traffic=recipe.update_traffic,
        joined_dispatch=recipe.joined_dispatch,
        padded_experts=recipe.padded_experts,
        deepspeed=recipe.deepspeed,
    )


def kernels_of(recipe: Recipe, asked: Kernels) -> Kernels:
    """Return the elementwise kernels: those asked for, unless these are the plainest."""
    return recipe.kernels if asked == "eager" else asked


_CORE_SINCE = 2023
"""The year from which Megatron-LM means Megatron-Core."""


@cache
def recipe(framework: str, year: int | None = None) -> Recipe:
    """Return the defaults of a framework in some year, by the start of its name.

    An unknown framework has those of plain PyTorch.

    >>> recipe("composer+FSDP").flash
    'flash1'
    """
    name = framework.lower()
    keys = [key for key in _RECIPES if name.startswith(key)]
    if not keys:
        return _DEFAULT
    key = max(keys, key=len)
    if key == "megatron-lm" and year is not None and year >= _CORE_SINCE:
        key = "megatron-core"
    return _RECIPES[key]
