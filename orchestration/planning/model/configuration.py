"""Configurations: a model, the machines, and how the work is laid out on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from orchestration.errors import OrchestrationError
from orchestration.planning.model.shapes import ModelShape, Targets

Precision = Literal[
    "fp32", "fp16", "bf16", "bf16_pure", "bf16_true", "bf16_sr", "bf16_fp32opt",
    "fp8", "fp8_rowwise", "mxfp8", "nvfp4",
]  # fmt: skip
"""Number formats of weights, gradients and matrix products.

``fp16``, ``bf16``: mixed precision, fp32 master weights. ``bf16_pure``: FSDP that also reduces
gradients in bf16. ``bf16_true``: weights, gradients and Adam's moments all in bf16. ``bf16_sr``:
bf16 weights without a master copy, stochastic rounding. ``bf16_fp32opt``: as ``bf16``, gradients
in fp32. ``fp8``, ``fp8_rowwise``, ``mxfp8``, ``nvfp4``: matrix products in fewer bits, the rest
as in ``bf16``.
"""

_PRECISIONS = get_args(Precision)
_NARROW = frozenset({"fp8", "fp8_rowwise", "mxfp8", "nvfp4"})

Recompute = Literal["none", "attention", "operators", "full"]
"""Activations that the backward pass recomputes: none; those of attention's core (Megatron's
``selective``); all but every other matrix product's (torchtitan's ``op``); those of every layer."""

Attention = Literal["unfused", "flash1", "flash2", "flash3"]
"""Generation of the attention kernel: scores written to memory; FlashAttention 1 or Triton's
kernel of its time; FlashAttention 2; FlashAttention 3 or cuDNN's kernels, made for Hopper."""

Kernels = Literal["eager", "compiled", "fused"]
"""Kernels of elementwise work: one per operator, those of ``torch.compile``, or the hand-fused ones
of Megatron and Transformer Engine."""

Loss = Literal["eager", "copied", "plain", "parallel", "fused", "chunked"]
"""Implementation of the loss: it casts all logits to fp32, in three arrays (eager), also keeps
those of 16 bits (copied), stays in 16 bits (plain), is Megatron's for a split vocabulary
(parallel), computes in place (fused), or processes them in chunks and never holds all (Liger)."""

Softmax = Literal["fused", "operators", "wide", "masked", "cast"]
"""Softmax of attention whose scores are written to memory: scaled and masked by one kernel
(Megatron's); by an operator each; the same in fp32 for models like Llama, and for all under
autocast (Hugging Face's); of a copy that a mask fills (Aleph Alpha's); or of scores that are cast
to fp32, scaled, and cast back, without a mask (Apex's where its kernel finds none)."""

Activation = Literal["kernel", "biased", "tanh"]
"""Activation of a network without gates: one kernel; the same after a bias is added; or GELU
operator by operator (transformers' ``gelu_new``)."""

Positions = Literal["operators", "cast", "kernel"]
"""Rotary positions without fused or compiled kernels: operator by operator; by one kernel on values
cast to fp32, and back (Qwen's first models); or by one kernel (flash-attn's)."""

Dropout = Literal["none", "hidden", "all"]
"""Dropout in training: none, of what attention and feed-forward networks add, or of attention's
weights too."""

Offload = Literal["none", "optimizer", "all"]
"""Contents of the host's memory: nothing, the optimizer and its states, or parameters too."""

LayoutFamily = Literal["single", "replicated", "sharded", "smp_v1", "smp_v2", "neuron", "servers"]
"""Groups of layouts that the same strategies start."""

Optimizer = Literal["adamw", "adamw_8bit", "momentum", "sgd"]
"""State that the optimizer keeps per parameter: Adam's two moments, the same in 8 bits each, one
moment, or none."""


class ConfigurationError(OrchestrationError, ValueError):
    """A configuration contradicts itself, or lacks facts that a prediction needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Accelerators and the links between them."""

    accelerator: str
    """A key of ``cost/devices.csv``: ``a100-80``."""
    devices: int
    """Devices of the whole cluster; one process drives each."""
    devices_per_node: int
    device_memory_gib: float
    network_gbps: float | None = None
    """Network bandwidth of one node in Gbit/s; required for more than one node."""
    collective_gbps: float | None = None
    """Gbit/s out of a node that the cluster's own all-reduce benchmark reached; ``None``: nobody
    measured it, so most of `network_gbps`."""
    vcpus: int | None = None
    """Virtual processors of one node; ``None``: as many as are usual beside its devices."""
    host_threads: int | None = None
    """Threads with which each process updates offloaded states: one if ``torchrun`` starts it and
    nobody sets ``OMP_NUM_THREADS``; ``None``: its share of the processors."""
    interconnect_gb_per_s: float | None = None
    """GB/s from one device to the others of its node, one way; ``None``: the accelerator's usual
    value."""

    @property
    def nodes(self) -> int:
        """Number of nodes in the cluster."""
        return -(-self.devices // self.devices_per_node)


@dataclass(frozen=True, kw_only=True)  # without slots, so that `working` copies it at once
class Configuration:
    """One way to train one model on one cluster."""

    model: ModelShape
    machine: Machine
    sequence: int
    """Tokens of one sample."""
    global_batch: int
    """Samples of one optimizer step."""
    micro_batch: int
    """Samples that one replica processes at once."""
    precision: Precision = "bf16"
    tensor: int = 1
    sequence_parallel: bool = False
    pipeline: int = 1
    interleave: int = 1
    """Model chunks per pipeline stage (virtual pipeline)."""
    context: int = 1
    expert: int = 1
    zero: int = 0
    """State that is sharded over data-parallel ranks: 0 none, 1 optimizer states, 2 gradients too,
    3 (FSDP) parameters too."""
    shard: int | None = None
    """Ranks to shard over; fewer than all is hybrid sharding. ``None``: all data-parallel ranks."""
    offload: Offload = "none"
    pageable: bool = False
    """Offloaded states are in pageable memory (DeepSpeed's ``pin_memory: false``, its default)."""
    recompute: Recompute = "none"
    recompute_share: float = 1.0
    """Fraction of the layers that `recompute` applies to."""
    stops_early: bool = False
    """Recomputing a layer ends when all is there that its backward pass reads (PyTorch's
    non-reentrant checkpoints): without the last product of its feed-forward network."""
    attention: Attention = "flash2"
    kernels: Kernels = "eager"
    autocast: bool = False
    """Weights are in fp32, and every product casts its operands (``torch.autocast``)."""
    fused_norms: bool = False
    """Norms are one kernel each, whatever `kernels` says of the rest."""
    cast_norms: bool = False
    """Their input is cast to fp32 before, and its gradient back (InternEvo)."""
    activation: Activation = "kernel"
    positions: Positions = "operators"
    update_traffic: float = 1.0
    """Bytes that the optimizer's kernels move over those of one that updates all states at once."""
    loss: Loss = "eager"
    dropout: Dropout = "none"
    overlap_data: bool = True
    """Reduce gradients, and gather weights, while the device computes."""
    overlap_tensor: bool = False
    """Run tensor-parallel collectives during matrix products."""
    gradient_bytes: int = 0
    """Bytes of a gradient while it is reduced; 0: what `precision` implies."""
    trainable: int | None = None
    """Number of trained parameters, those of an adapter (LoRA); ``None``: all parameters."""
    adapter_targets: Targets = "all"
    """The layers' matrices that have an adapter."""
    adapter_dropout: bool = False
    """Adapters drop a part of their input."""
    frozen_bits: float = 0.0
    """Bits per parameter of the layers' frozen matrices, with their scales (QLoRA: about 4.5); 0:
    those of `precision`."""
    whole_graph: bool = False
    """The device executes a step as one graph (Megatron's ``full_iteration`` CUDA graphs), so that
    nothing waits for the host."""
    fused_experts: bool = False
    """Experts' grouped products also gate, and cast to 8 bits (Transformer Engine's CuTe DSL)."""
    optimizer: Optimizer = "adamw"
    separate_unpacking: bool = False
    """Operators unpack frozen matrices of few bits one by one (GPTQ's without a kernel), instead of
    one kernel (bitsandbytes)."""
    reduced_bytes: int = 0
    """Bytes of a gradient while it is reduced, if they are not those of the stored one; 0: they
    are."""
    whole_reduction: bool = False
    """ZeRO 1 and 2 reduce whole gradients to every rank."""
    broadcast_weights: bool = False
    """After the update each rank with states broadcasts its weights, one rank after another."""
    whole_transfers: bool = False
    """Every tensor-parallel rank sends all it has to the next pipeline stage: whole activations,
    unless sequence parallelism splits them."""
    separate_projections: bool = False
    """The two projections into a gated feed-forward network reduce the gradients of their input
    one by one, unless sequence parallelism shares them."""
    whole_logits: bool = False
    """Every tensor-parallel rank gathers the logits of the whole vocabulary."""
    whole_embedding: bool = False
    """Every tensor-parallel rank has the whole embedding, unless the output layer shares it."""
    recomputed_head: bool = False
    """Full recomputation covers the output layer, too."""
    even_modules: bool = False
    """Pipeline stages have as many modules each, of which embedding, final norm and output layer
    are three beside the layers."""
    kept_logits: bool = False
    """The logits of a micro-batch stay until those of the one after the next replace them."""
    update_bytes: int = 0
    """Bytes per updated parameter that an optimizer's step takes for a moment; 0: fused kernels."""
    reduce_bucket: float = 5e8
    """Elements of DeepSpeed's buffers for reducing gradients (``reduce_bucket_size``)."""
    wide_ends: bool = False
    """Beside frozen matrices of few bits, embedding and output layer are in fp32."""
    separate_ends: bool = False
    """FSDP gathers embedding and output layer one by one, as it does layers."""
    whole_gradients: bool = False
    """FSDP accumulates gradients without reducing them, so that every rank keeps whole ones."""
    kept_gradients: bool = False
    """Gradients are in buffers that stay between two steps."""
    softmax: Softmax = "operators"
    joined_dispatch: bool = False
    """A token travels to a device once, however many of its experts are there (DeepEP)."""
    padded_experts: bool = False
    """Every expert computes as many tokens as the one that has most of them."""
    consecutive_experts: bool = False
    """Tokens pass consecutive experts in turn, as a benchmark's balanced gate assigns them."""
    fresh_gate: bool = False
    """A gate is in its first twenty steps, in which it sends most tokens to few experts."""
    deepspeed: bool = False
    """Train with DeepSpeed's engine: its ZeRO 1 reduces whole gradients and keeps copies of them,
    and its checkpointing waits for the device."""

    def __post_init__(self) -> None:
        if problems := list(_problems(self)):
            raise ConfigurationError("; ".join(problems))

    def working(
        self, *, global_batch: int, micro_batch: int, recompute: Recompute, offload: Offload
    ) -> Configuration:
        """Return the same layout with other work; a search asks for thousands.

        Nothing is checked again: both numbers are at least 1.
        """
        other = object.__new__(Configuration)
        vars(other).update(
            vars(self),
            global_batch=global_batch,
            micro_batch=micro_batch,
            recompute=recompute,
            offload=offload,
        )
        return other

    def sharded(self, shard: int | None) -> Configuration:
        """Return the same layout with states sharded over other ranks, without checks."""
        other = object.__new__(Configuration)
        vars(other).update(vars(self), shard=shard)
        return other

    @property
    def data(self) -> int:
        """Number of data-parallel replicas."""
        return self.machine.devices // (self.tensor * self.pipeline * self.context)

    @property
    def micro_batches(self) -> int:
        """Number of micro-batches of one replica in one step."""
        return max(1, round(self.global_batch / (self.micro_batch * self.data)))

    @property
    def shards(self) -> int:
        """Number of ranks that model states are sharded over (see `zero`)."""
        return self.shard or self.data * self.context

    @property
    def element_bytes(self) -> int:
        """Bytes of one activation, and of one weight while it is used."""
        return 4 if self.precision == "fp32" else 2

    @property
    def residual_bytes(self) -> int:
        """Bytes of one activation between layers: in fp32 where embedding and norms are."""
        return 4 if self.autocast or self.widened else self.element_bytes

    @property
    def widened(self) -> bool:
        """True if embedding, norms and output layer beside packed matrices are in fp32.

        PEFT's ``prepare_model_for_kbit_training`` leaves those of GPTQ as they are.
        """
        return self.wide_ends and self.frozen_bits > 0 and not self.separate_unpacking

    @property
    def narrow(self) -> bool:
        """True if matrix products take operands of fewer than 16 bits."""
        return self.precision in _NARROW

    @property
    def tokens(self) -> int:
        """Number of tokens in one optimizer step."""
        return self.global_batch * self.sequence


def _problems(c: Configuration) -> list[str]:
    fewest = min(c.machine.devices, c.machine.devices_per_node, c.tensor, c.pipeline, c.context)
    if fewest < 1:
        return ["devices, devices per node and degrees of parallelism must be at least 1"]
    problems = []
    replica = c.tensor * c.pipeline * c.context
    if c.machine.devices % replica:
        problems.append(
            f"tensor x pipeline x context is {replica}, which does not divide "
            f"{c.machine.devices} devices"
        )
    if min(c.sequence, c.global_batch, c.micro_batch) < 1:
        for name in ("sequence", "global_batch", "micro_batch"):
            if getattr(c, name) < 1:
                problems.append(f"{name} must be at least 1, got {getattr(c, name)}")
    if c.frozen_bits and c.trainable is None:
        problems.append("frozen_bits needs trainable: only frozen weights can have so few bits")
    if c.precision not in _PRECISIONS:
        problems.append(f"unknown precision {c.precision!r}; expected {', '.join(_PRECISIONS)}")
    if c.machine.nodes > 1 and c.machine.network_gbps is None:
        problems.append("machine.network_gbps is required for more than one node")
    return problems
