"""Peak memory of one device, by part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from orchestration.planning.cost.activations import kept_and_recomputed_bytes, layer_bytes
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
    stage_layers,
    stage_parameters,
    state_bytes,
    widened_bytes,
)
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes

_LOSS_BYTES = {
    "eager": 12.0, "copied": 14.0, "plain": 8.0, "parallel": 10.0, "fused": 4.0, "chunked": 0.0,
}  # fmt: skip
"""Bytes per logit. Operators one by one hold three arrays in fp32 in the backward pass: the
softmax, its gradient and the logit's; some engines keep the logit in 16 bits beside them, and some
have no cast, so that all four take 16 bits. Megatron's loss for a split vocabulary holds the logit
in 16 bits, in fp32, and its exponential. In place, a logit and its gradient take 16 bits each."""

_FORWARD_LOSS_BYTES = 10.0
"""Bytes per logit of those operators in the forward pass: of 16 bits, in fp32, and the softmax."""


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


class Held(NamedTuple):
    """Bytes of the fullest device that no micro-batch and no recomputation changes."""

    weights: float
    gradients: float
    optimizer: float
    gathered: float
    update: float
    """Bytes that the optimizer's step takes for a moment."""
    context_gib: float


class Passing(NamedTuple):
    """Bytes of activations, however states are sharded and whatever is offloaded."""

    kept: float
    working: float
    layer: float | None
    """Bytes of the last layer in work; ``None``: gradients are there while activations are."""


def memory_use(c: Configuration, s: Sizes, k: Coefficients) -> MemoryUse:
    """Predict the memory of the fullest device."""
    return joint_use(held_bytes(c, s), passing_bytes(c, s), k)


def held_bytes(c: Configuration, s: Sizes) -> Held:
    """Predict what a device holds of states and buffers."""
    experts = local_experts(c, s)
    states = state_bytes(c, local_parameters(c, s) - experts, experts)
    return Held(
        weights=states.weights - packed_bytes(c, s) + widened_bytes(c, s),
        gradients=states.gradients,
        optimizer=states.optimizer,
        gathered=gathered_bytes(c, s) + bucket_bytes(c, s),
        update=update_bytes(c, s),
        context_gib=context_gib(c),
    )


def passing_bytes(c: Configuration, s: Sizes) -> Passing:
    """Predict the activations that wait for their backward pass, and those in work."""
    kept, working = _activations(c, s)
    if c.kept_gradients or c.deepspeed or c.micro_batches > 1:
        return Passing(kept, working, None)
    return Passing(kept, working, layer_bytes(c, s) * _tokens(c))


def passing_parts(c: Configuration) -> tuple[int, ...]:
    """Return the degrees that activations of as many tokens depend on.

    Ranks of context parallelism divide the tokens, unless scores of whole sequences are stored.
    Experts weigh only where weights are copied.
    """
    copied = c.autocast or c.widened
    stored = c.attention == "unfused"
    return c.tensor, c.pipeline, c.context if stored else 1, c.expert if copied else 1


def joint_need(held: Held, passing: Passing) -> float:
    """Return the GiB without which training fails: `need` of what `joint_use` returns."""
    activations, working = _beside_gradients(passing, held.gradients)
    working = max(working, held.update - activations)
    states = held.weights + held.gradients + held.optimizer
    return (states + held.gathered + activations + working) / GIB + held.context_gib


def joint_use(held: Held, passing: Passing, k: Coefficients) -> MemoryUse:
    """Return the memory of states, buffers and activations together."""
    activations, working = _beside_gradients(passing, held.gradients)
    # The optimizer works when activations are gone, but gets none of the blocks that they leave
    # to the allocator unless memory is short.
    update, all_passing = held.update, activations + working
    working = max(working, update - activations)
    slack = (k.fragmentation - 1) * (held.gathered + all_passing) + min(update, all_passing)
    return MemoryUse(
        weights=held.weights / GIB,
        gradients=held.gradients / GIB,
        optimizer=held.optimizer / GIB,
        gathered=held.gathered / GIB,
        activations=activations / GIB,
        working=working / GIB,
        context=held.context_gib,
        slack=slack / GIB,
    )


def _beside_gradients(passing: Passing, gradients: float) -> tuple[float, float]:
    """Return the bytes of activations, and of those in work, that are there beside gradients.

    Gradients that the step before has freed come while activations go: the peak is at the
    beginning of the backward pass, without gradients, or in its last layer, with all.
    """
    kept, working, layer = passing
    if layer is None:
        return kept, working
    last = min(kept + working, layer)
    peak = max(last, kept + working - gradients)
    return min(kept, peak), max(0.0, peak - kept)


def _tokens(c: Configuration) -> float:
    return c.micro_batch * c.sequence / c.context


def _activations(c: Configuration, s: Sizes) -> tuple[float, float]:
    """Return the bytes of activations that wait for their backward pass, and of those in work."""
    tokens = _tokens(c)
    kept, again = (each * tokens for each in kept_and_recomputed_bytes(c, s))
    kept *= stage_layers(c, s)
    logits = tokens * s.words / (1 if c.whole_logits else c.tensor)
    loss = logits * _logit_bytes(c)
    if c.autocast or c.widened:
        loss += _copied_weights(c, s, logits)
    # The first stage keeps every micro-batch in flight, and each output until it is sent.
    first = kept * _in_flight(c)
    if c.pipeline > 1:
        first += c.element_bytes * s.hidden * tokens * _in_flight(c)
    # The last stage holds the logits, but only one micro-batch.
    working = max(loss, again)
    return (first, again) if first + again > kept + working else (kept, working)


def _copied_weights(c: Configuration, s: Sizes, logits: float) -> float:
    """Return the bytes that autocast's copies of the weights add to the peak at the loss.

    They stay to the end of the forward pass, where logits take less than in the backward pass, and
    those of layers that are not recomputed, and of the output layer, to their backward pass.
    """
    # Packed matrices are unpacked one by one.
    layers = 0.0 if c.widened else 2 * stage_parameters(c, s)
    head = 2 * s.hidden * s.words / c.tensor
    less = logits * max(0.0, _logit_bytes(c) - _FORWARD_LOSS_BYTES)
    return head + (layers if c.recompute != "full" else max(0.0, layers - less))


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
