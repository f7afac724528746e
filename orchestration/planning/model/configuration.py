"""What a prediction is made from: a model, the machines, and how the work is laid out on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from orchestration.errors import OrchestrationError
from orchestration.planning.model.shapes import ModelShape

Precision = Literal[
    "fp32", "fp16", "bf16", "bf16_pure", "bf16_true", "bf16_sr", "bf16_fp32opt",
    "fp8", "fp8_rowwise", "mxfp8", "nvfp4",
]  # fmt: skip
"""How numbers are kept and multiplied.

``fp16``, ``bf16``: mixed precision, fp32 master weights. ``bf16_pure``: FSDP that also reduces
gradients in bf16. ``bf16_true``: weights, gradients and Adam's moments all in bf16. ``bf16_sr``:
bf16 weights without a master copy, stochastic rounding. ``bf16_fp32opt``: as ``bf16``, gradients
in fp32. ``fp8``, ``fp8_rowwise``, ``mxfp8``, ``nvfp4``: matrix products in fewer bits, the rest
as in ``bf16``.
"""

_NARROW = frozenset({"fp8", "fp8_rowwise", "mxfp8", "nvfp4"})

Recompute = Literal["none", "attention", "operators", "full"]
"""What the backward pass computes again: nothing; the core of attention (Megatron's
``selective``); everything but every other matrix product (torchtitan's ``op``); every layer."""

Attention = Literal["unfused", "flash1", "flash2", "flash3"]
"""Generation of the attention kernel: scores written to memory; FlashAttention 1 or Triton's
kernel of its time; FlashAttention 2; FlashAttention 3 or cuDNN's kernels, made for Hopper."""

Kernels = Literal["eager", "compiled", "fused"]
"""How elementwise work reaches the device: one kernel per operator, ``torch.compile``, or the
hand-fused kernels of Megatron and Transformer Engine."""

Loss = Literal["eager", "fused", "chunked"]
"""Whether the loss casts all logits to fp32 and keeps them, computes in place (fused), or never
has all of them (Liger's chunks)."""

Offload = Literal["none", "optimizer", "all"]
"""What lives in the host's memory: nothing, the optimizer and its states, parameters as well."""

Optimizer = Literal["adamw", "momentum", "sgd"]
"""What the optimizer keeps of each parameter: Adam's two moments, one, or none."""


class ConfigurationError(OrchestrationError, ValueError):
    """A configuration that contradicts itself or of which too little is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The accelerators and what is between them."""

    accelerator: str
    """A key of `orchestration.planning.cost.devices`: ``a100-80``."""
    devices: int
    """Devices of the whole cluster, as processes drive them."""
    devices_per_node: int
    device_memory_gib: float
    network_gbps: float | None = None
    """Gbit/s of one node; needed as soon as there are two."""
    omnipath: bool = False
    """The network is Omni-Path, which moves a device's memory through the host."""
    interconnect_gb_per_s: float | None = None
    """GB/s from one device to the others of its node, one way; ``None``: as the accelerator is
    usually wired."""

    @property
    def nodes(self) -> int:
        """Nodes of the cluster."""
        return -(-self.devices // self.devices_per_node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One way to train one model on one cluster."""

    model: ModelShape
    machine: Machine
    sequence: int
    """Tokens of one sample."""
    global_batch: int
    """Samples of one optimizer step."""
    micro_batch: int
    """Samples that one replica computes at once."""
    precision: Precision = "bf16"
    tensor: int = 1
    sequence_parallel: bool = False
    pipeline: int = 1
    interleave: int = 1
    """Model chunks per pipeline stage (virtual pipeline)."""
    context: int = 1
    expert: int = 1
    zero: int = 0
    """What data-parallel ranks share out: 0 nothing, 1 optimizer states, 2 gradients too,
    3 (FSDP) parameters too."""
    shard: int | None = None
    """Ranks that share; fewer than all is hybrid sharding. ``None``: all data-parallel ranks."""
    offload: Offload = "none"
    recompute: Recompute = "none"
    recompute_share: float = 1.0
    """Share of the layers that `recompute` is applied to."""
    attention: Attention = "flash2"
    kernels: Kernels = "eager"
    loss: Loss = "eager"
    dropout: bool = False
    overlap_data: bool = True
    """Gradients are reduced, and weights gathered, while the device computes."""
    overlap_tensor: bool = False
    """Tensor-parallel collectives run beside matrix products."""
    gradient_bytes: int = 0
    """Bytes of a gradient while it is reduced; 0: as `precision` implies."""
    trainable: int | None = None
    """Parameters that are trained, of an adapter (LoRA); ``None``: all."""
    optimizer: Optimizer = "adamw"
    deepspeed: bool = False
    """DeepSpeed's engine runs the step: ZeRO 1 reduces whole gradients and keeps copies of them,
    and checkpointing waits for the device."""

    def __post_init__(self) -> None:
        if problems := list(_problems(self)):
            raise ConfigurationError("; ".join(problems))

    @property
    def data(self) -> int:
        """Data-parallel replicas."""
        return self.machine.devices // (self.tensor * self.pipeline * self.context)

    @property
    def micro_batches(self) -> int:
        """Micro-batches of one replica in one step."""
        return max(1, round(self.global_batch / (self.micro_batch * self.data)))

    @property
    def shards(self) -> int:
        """Ranks that share model states (see `zero`)."""
        return self.shard or self.data * self.context

    @property
    def element_bytes(self) -> int:
        """Bytes of an activation, and of a weight while it is used."""
        return 4 if self.precision == "fp32" else 2

    @property
    def narrow(self) -> bool:
        """Whether matrix products take operands of fewer than 16 bits."""
        return self.precision in _NARROW

    @property
    def tokens(self) -> int:
        """Tokens of one optimizer step."""
        return self.global_batch * self.sequence


def _problems(c: Configuration) -> list[str]:
    fewest = min(c.machine.devices, c.machine.devices_per_node, c.tensor, c.pipeline, c.context)
    if fewest < 1:
        return ["devices, devices per node and degrees of parallelism have to be 1 or more"]
    problems = []
    replica = c.tensor * c.pipeline * c.context
    if c.machine.devices % replica:
        problems.append(
            f"tensor x pipeline x context is {replica}, which does not divide the "
            f"{c.machine.devices} devices"
        )
    for name in ("sequence", "global_batch", "micro_batch", "tensor", "pipeline", "context"):
        if getattr(c, name) < 1:
            problems.append(f"{name} is {getattr(c, name)}; the least is 1")
    if c.precision not in get_args(Precision):
        problems.append(f"precision {c.precision!r} is none of {', '.join(get_args(Precision))}")
    if c.machine.nodes > 1 and c.machine.network_gbps is None:
        problems.append("several nodes, and machine.network_gbps is not known")
    return problems
