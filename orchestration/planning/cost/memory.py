"""Peak memory of one device, by part."""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.planning.cost.activations import kept_and_recomputed_bytes
from orchestration.planning.cost.buffers import (
    GIB,
    bucket_bytes,
    context_gib,
    gathered_bytes,
    update_bytes,
)
from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.cost.model_states import (
    local_experts,
    local_parameters,
    packed_bytes,
    state_bytes,
    widened_bytes,
)
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes

_LOSS_BYTES = {"eager": 10.0, "copied": 14.0, "plain": 8.0, "fused": 4.0, "chunked": 0.0}
"""Bytes per logit. Computed in place, a logit and its gradient take 16 bits each; operators one by
one hold the logit in 16 bits and two copies in fp32: its softmax and the gradient. Where a cast
made a copy of its own, softmax, its gradient and the copy's are in fp32; without a cast those and
the logit take 16 bits each."""


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
    experts = local_experts(c, s)
    states = state_bytes(c, local_parameters(c, s) - experts, experts)
    gathered = gathered_bytes(c, s) + bucket_bytes(c, s)
    activations, working = _activations(c, s)
    # The optimizer works when activations are gone, but gets none of the blocks that they leave
    # to the allocator unless memory is short.
    update, passing = update_bytes(c, s), activations + working
    working = max(working, update - activations)
    return MemoryUse(
        weights=(states.weights - packed_bytes(c, s) + widened_bytes(c, s)) / GIB,
        gradients=states.gradients / GIB,
        optimizer=states.optimizer / GIB,
        gathered=gathered / GIB,
        activations=activations / GIB,
        working=working / GIB,
        context=context_gib(c),
        slack=((k.fragmentation - 1) * (gathered + passing) + min(update, passing)) / GIB,
    )


def _activations(c: Configuration, s: Sizes) -> tuple[float, float]:
    """Return the bytes of activations that wait for their backward pass, and of those in work."""
    tokens = c.micro_batch * c.sequence / c.context
    kept, again = (each * tokens for each in kept_and_recomputed_bytes(c, s))
    kept *= s.layers / c.pipeline
    logits = tokens * s.words / (1 if c.whole_logits else c.tensor) * _logit_bytes(c)
    # The first stage keeps every micro-batch in flight, and each output until it is sent.
    first = kept * _in_flight(c)
    if c.pipeline > 1:
        first += c.element_bytes * s.hidden * tokens * _in_flight(c)
    # The last stage holds the logits, but only one micro-batch.
    working = max(logits, again)
    return (first, again) if first + again > kept + working else (kept, working)


def _logit_bytes(c: Configuration) -> float:
    kept = c.element_bytes if c.kept_logits and c.micro_batches > 1 else 0
    return _LOSS_BYTES[c.loss] + kept


def _in_flight(c: Configuration) -> float:
    """Return how many micro-batches the first pipeline stage keeps at once.

    Interleaving keeps more: https://arxiv.org/abs/2205.05198, section 4.2.3.
    """
    if c.pipeline == 1:
        return 1.0
    more = 1 + (c.pipeline - 1) / (c.pipeline * c.interleave) if c.interleave > 1 else 1.0
    return min(c.pipeline * more, float(c.micro_batches))
