"""Peak memory of one device, by part."""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.planning.cost.activations import kept_bytes, layer_bytes
from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.cost.model_states import (
    embedding_parameters,
    local_experts,
    local_parameters,
    stage_parameters,
    state_bytes,
)
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes

GIB = 2**30

_LOSS_BYTES = {"fused": 4.0, "chunked": 0.0}
"""Bytes per logit; computed in place, a logit and its gradient take 16 bits each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """GiB of the fullest device, by use."""

    weights: float
    gradients: float
    optimizer: float
    gathered: float
    """Parameters that FSDP gathers for a moment, and DeepSpeed's buffers."""
    activations: float
    """Activations kept for the backward pass, of every micro-batch in flight."""
    working: float
    """The layer in computation, and the logits."""
    context: float
    """The driver, and buffers of communication libraries."""
    slack: float
    """Memory that the allocator holds, and frees when memory is short."""

    @property
    def states(self) -> float:
        """Weights, gradients and optimizer states."""
        return self.weights + self.gradients + self.optimizer

    @property
    def allocated(self) -> float:
        """Memory of all tensors at the peak: PyTorch's ``max_memory_allocated``."""
        return self.need - self.context

    @property
    def need(self) -> float:
        """Memory without which training fails."""
        return self.states + self.gathered + self.activations + self.working + self.context

    @property
    def total(self) -> float:
        """Memory that ``nvidia-smi`` shows while memory is not short."""
        return self.need + self.slack


def memory_use(c: Configuration, s: Sizes, k: Coefficients) -> MemoryUse:
    """Predict the memory of the fullest device."""
    parameters = local_parameters(c, s)
    experts = local_experts(c, s)
    states = state_bytes(c, parameters - experts, experts)
    gathered = _gathered(c, s, k) + _buffers(c, parameters, k)
    tokens = c.micro_batch * c.sequence / c.context
    kept = s.layers / c.pipeline * kept_bytes(c, s) * tokens
    again = layer_bytes(c, s) * tokens if c.recompute in ("full", "operators") else 0.0
    logits = tokens * s.words / c.tensor * _LOSS_BYTES.get(c.loss, k.logit_memory_bytes)
    # The first stage keeps every micro-batch in flight, and each output until it is sent.
    first = kept * _in_flight(c) + again
    if c.pipeline > 1:
        first += c.element_bytes * s.hidden * tokens * _in_flight(c)
    # The last stage holds the logits, but only one micro-batch.
    last = kept + max(logits, again)
    activations, working = (first - again, again) if first > last else (kept, last - kept)
    used = states.total + gathered + activations + working
    return MemoryUse(
        weights=states.weights / GIB,
        gradients=states.gradients / GIB,
        optimizer=states.optimizer / GIB,
        gathered=gathered / GIB,
        activations=activations / GIB,
        working=working / GIB,
        context=k.context_gib,
        slack=(k.fragmentation - 1) * used / GIB,
    )


def _gathered(c: Configuration, s: Sizes, k: Coefficients) -> float:
    """Return the bytes that FSDP gathers at once: a few layers and the embedding."""
    if c.zero < 3 or c.shards == 1:
        return 0.0
    layer = stage_parameters(c, s) / (s.layers / c.pipeline)
    return c.element_bytes * (k.gathered_layers * layer + embedding_parameters(c, s))


def _buffers(c: Configuration, parameters: float, k: Coefficients) -> float:
    """Return the bytes of DeepSpeed's fp32 copies of gradients that a rank updates, and buckets.

    Without a pipeline ZeRO reduces gradients in two buckets of half a billion 16-bit elements.
    """
    if not c.deepspeed or c.zero >= 3:
        return 0.0
    buckets = 2e9 if c.zero and c.pipeline == 1 and c.data > 1 else 0.0
    return k.zero_buffer_bytes * parameters / (c.shards if c.zero else 1) + buckets


def _in_flight(c: Configuration) -> float:
    """Return how many micro-batches the first pipeline stage keeps at once.

    Interleaving keeps more: https://arxiv.org/abs/2205.05198, section 4.2.3.
    """
    if c.pipeline == 1:
        return 1.0
    more = 1 + (c.pipeline - 1) / (c.pipeline * c.interleave) if c.interleave > 1 else 1.0
    return min(c.pipeline * more, float(c.micro_batches))
