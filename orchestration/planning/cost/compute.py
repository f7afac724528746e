"""Computing time of one device: matrix products, attention, elementwise work, launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.cost.devices import device
from orchestration.planning.cost.rates import Rates
from orchestration.planning.cost.traffic import (
    adapter_bytes,
    cast_bytes,
    cast_weight_bytes,
    elementwise_bytes,
    one_softmax,
    padding,
    passed_share,
    score_bytes,
)
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes

_UNPACKED_SEPARATELY: Final = 36.5
"""Bytes that a copy moves while AutoGPTQ's ``QuantLinear`` unpacks a weight of 4 bits without a
kernel of its own, nor an order of activations (``nn_modules/qlinear/qlinear_cuda_old.py``):
shifting to 32 bits 8.5, to 8 bits 5.5, masking 2.3, subtracting zeros 7.7, and scaling 11.8. They
read and write 16.5; operators on 8 bits and on groups wait for instructions. Measured as the bytes
in `traffic`."""

_UNALIGNED: Final = {"hopper": (0.17, 0.27), "blackwell": (0.17, 0.27)}
_UNALIGNED_BEFORE: Final = (0.27, 0.42)
"""Rates of products whose output is not a multiple of 8 wide over those of others, forward and
backward, as 16 bytes can't be copied at once: 98 and 148 TFLOP/s on an H100 for 50,265 words
(``tests/data/planner/products.csv``). Such kernels are those of Ampere, so that an A100 takes 1.6
times as long, as its processors are fewer and slower."""

_EAGER: Final = (34.0, 88.0)
"""Kernels of a layer of transformers' Llama, forward and backward (traced with a dispatch mode of
PyTorch 2.13; views and shapes launch nothing)."""

_FUSED: Final = (16.0, 36.0)
"""The same with fused or compiled elementwise work: one kernel for each norm, rotary positions,
gating and attention beside the matrix products, and as many for gradients of inputs and weights."""

_LOSS: Final = {"eager": 52.0, "copied": 56.0, "plain": 18.0}
"""Bytes per logit that the loss moves, both passes: PyTorch's of logits cast to fp32, the same with
another pass for an accuracy, and of 16 bits. Measured as the bytes in `traffic`."""

_JOINED_LOGITS: Final = 8.0
"""Bytes per logit that joining what ranks have gathered moves: a copy to its place, and another."""

_NORM: Final = 7.0
"""Kernels that a norm takes more if it is not one."""

_ADAPTERS: Final = (50.0, 57.0)
"""Further kernels with adapters: of PEFT's LoRA on five to seven projections 40 to 58, and 45 to
69 (traced as above)."""

_UNPACKING: Final = 13.0
"""Kernels that unpack one matrix operator by operator."""

_HOOKS: Final = 11.0
"""Kernels in whose launching time DeepSpeed's ZeRO 3 runs its hooks around a module, in one pass:
406 microseconds beside 37 (DeepSpeed 0.17.1, PyTorch 2.11, on an H100's host, 2026-11-27)."""

_MODULES: Final = (13.0, 4.0)
"""Modules of a layer of transformers' Llama, and further ones of PEFT's LoRA for each matrix: the
original, dropout, and two factors."""

_MATRICES: Final = 5.0
"""Packed matrices in a layer: four of attention and three of a gated network, of which models store
some together."""


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Seconds of one average layer and one micro-batch on one device."""

    matmul_forward: float
    matmul_backward: float
    attention_forward: float
    attention_backward: float
    elementwise_forward: float
    elementwise_backward: float
    last_forward: float = 0.0
    """Part of `matmul_forward`: the last product of the network that every token passes."""

    @property
    def forward(self) -> float:
        """Seconds of the forward pass."""
        return self.matmul_forward + self.attention_forward + self.elementwise_forward

    @property
    def backward(self) -> float:
        """Seconds of the backward pass without recomputation."""
        return self.matmul_backward + self.attention_backward + self.elementwise_backward


def layer_time(c: Configuration, s: Sizes, r: Rates, k: Coefficients) -> LayerTime:
    """Predict one average layer."""
    tokens = c.micro_batch * c.sequence / c.context
    t = c.tensor
    # A rank has at least one key head, even if there are more ranks than key heads.
    keys_and_values = max(s.keys_and_values / t, 2.0 * s.head_width)
    f1, b1 = product_time(tokens, s.hidden, s.query / t + keys_and_values, r)
    f2, b2 = product_time(tokens, s.output / t, s.hidden, r)
    forward, backward, last = f1 + f2, b1 + b2, 0.0
    if s.ffn:
        f1, b1 = product_time(tokens, s.hidden, s.up / t, r)
        last, b2 = product_time(tokens, s.ffn / t, s.hidden, r)
        forward += f1 + last
        backward += b1 + b2
    forward, backward = forward * s.scale, backward * s.scale
    if s.experts:
        f1, b1 = _expert_time(c, s, tokens, r, k)
        forward += f1
        backward += b1
    if c.trainable is not None:
        # Frozen matrices have no gradients; those of adapters are products like any other's.
        passed = c.trainable * passed_share(c, s)
        adapters = 2 * tokens * passed / s.layers / t / r.matmul_16
        forward, backward = forward + adapters, backward / 2 + 2 * adapters
    unpacked = _unpacking_time(c, s, r)
    forward, backward = forward + unpacked, backward + (0 if c.separate_unpacking else unpacked)
    attention_forward, attention_backward = attention_time(c, s, tokens, r, k)
    factor = k.elementwise_eager if c.kernels == "eager" else k.elementwise_fused
    first, second = (factor * c.element_bytes / 2 * moved for moved in elementwise_bytes(c, s))
    narrowed, cast = cast_bytes(c, s, k), factor * cast_weight_bytes(c, s) / tokens
    with_adapters = adapter_bytes(c, s)
    first, second = (
        first + narrowed + cast + with_adapters[0],
        second + 2 * narrowed + cast + with_adapters[1],
    )
    return LayerTime(
        forward, backward, attention_forward, attention_backward,
        first * tokens / r.memory, second * tokens / r.memory,
        0.0 if s.experts else last * s.scale,
    )  # fmt: skip


def head_time(c: Configuration, s: Sizes, r: Rates, k: Coefficients) -> tuple[float, float]:
    """Predict the output layer and the loss, both passes, and recomputing the layer's output.

    Products are in 16 bits whatever the layers use.
    """
    if not s.words:
        return 0.0, 0.0
    tokens = c.micro_batch * c.sequence / c.context
    words = s.words / c.tensor
    forward, backward = product_time(tokens, s.hidden, words, r, r.matmul_16)
    if words % 8 and c.loss != "parallel":  # which Megatron pads
        slow = _UNALIGNED.get(device(c.machine.accelerator).generation, _UNALIGNED_BEFORE)
        forward, backward = forward / slow[0], backward / slow[1]
    if c.whole_logits and c.tensor > 1:
        words = float(s.words)
        forward += tokens * words * _JOINED_LOGITS / r.memory
    moved = k.elementwise_eager * _LOSS[c.loss] if c.loss in _LOSS else k.logit_bytes
    return forward + backward + tokens * words * moved / r.memory, forward


def attention_time(
    c: Configuration, s: Sizes, tokens: float, r: Rates, k: Coefficients
) -> tuple[float, float]:
    """Predict scores, softmax and weighted values of one layer: forward, backward."""
    if c.attention != "unfused":
        seconds = s.scores_causal * tokens / c.tensor / r.attention
        return seconds, r.attention_backward * seconds
    # The matrix units need heads whose width is a multiple of 8.
    rate = min(r.attention, r.vector) if s.head_width % 8 else r.attention
    seconds = s.scores * tokens / c.tensor / rate
    columns = (s.query + s.keys_and_values + s.output) * s.attentions
    scores = c.sequence * s.heads * s.attentions
    forward, backward = score_bytes(c, s)
    factor = k.elementwise_fused if one_softmax(c) else k.elementwise_eager
    # The two products write and read scores, and backward their gradients; so they do with
    # queries, keys, values and results, which count where sequences are short.
    forward = (4 + factor * forward) * scores + 2 * columns
    backward = (8 + factor * backward) * scores + 4 * columns
    moved = tokens / c.tensor * c.element_bytes / 2 / r.memory
    return seconds + forward * moved, 2 * seconds + backward * moved


def product_time(
    rows: float, inner: float, outer: float, r: Rates, rate: float = 0.0
) -> tuple[float, float]:
    """Predict a matrix product of ``rows x inner`` and ``inner x outer``: forward, backward.

    Memory traffic of operands and result is partly hidden. `rate` defaults to that of the
    configuration's precision. That the last wave of tiles is not full shows neither in the fitted
    rows nor in 404 products measured on one H100.
    """
    work = 2 * rows * inner * outer / (rate or r.matmul)
    moved = 2 * (rows * inner + inner * outer + rows * outer) / r.operands
    return work + moved, 2 * (work * r.matmul_backward + moved)


def launch_times(c: Configuration, s: Sizes, k: Coefficients) -> tuple[float, float]:
    """Predict launching the kernels of one layer for one micro-batch: forward, backward.

    The backward pass includes what it recomputes. The host runs ahead of the device, which waits
    only if this takes longer than computing.
    """
    eager = c.kernels == "eager"
    forward, backward = _EAGER if eager else _FUSED
    if eager and (c.fused_norms or not s.rotary):
        forward, backward = forward - 2 * _NORM, backward - 4 * _NORM
    if c.trainable is not None:
        forward, backward = forward + _ADAPTERS[0], backward + _ADAPTERS[1]
    if c.frozen_bits:
        forward += _MATRICES * (_UNPACKING if c.separate_unpacking else 1)
        backward += 0 if c.separate_unpacking else _MATRICES
    if c.deepspeed and c.zero == 3:
        adapters = _MODULES[1] * _MATRICES if c.trainable is not None else 0.0
        hooks = _HOOKS * (_MODULES[0] + adapters)
        forward, backward = forward + hooks, backward + hooks
    again = {"full": 1.0, "operators": 0.5}.get(c.recompute, 0.0) * c.recompute_share
    return forward * k.launch_us * 1e-6, (backward + again * forward) * k.launch_us * 1e-6


def _unpacking_time(c: Configuration, s: Sizes, r: Rates) -> float:
    """Predict turning an average layer's matrices of few bits into 16 bits, in one pass.

    Operators one by one keep their result for the backward pass; a kernel does its work again.
    """
    if not c.frozen_bits:
        return 0.0
    matrices = (s.common_parameters / c.tensor + s.expert_parameters / c.expert) / s.layers
    separate = _UNPACKED_SEPARATELY if c.separate_unpacking else 0.0
    return matrices * (separate or c.frozen_bits / 8 + c.element_bytes) / r.memory


def _expert_time(
    c: Configuration, s: Sizes, tokens: float, r: Rates, k: Coefficients
) -> tuple[float, float]:
    """Predict the routed experts of an average layer, as grouped products.

    Tensor parallelism divides either their tokens, of which each rank dispatches its own, or their
    matrices (Megatron's ``expert_tensor_parallel_size``): for each device that is as much work.
    """
    rows = tokens * s.routed / c.tensor * padding(c, s)
    up = (2 if s.gated else 1) * s.expert_ffn
    f1, b1 = product_time(rows, s.hidden, up, r)
    f2, b2 = product_time(rows, s.expert_ffn, s.hidden, r)
    matrices = s.experts / c.expert * (up + s.expert_ffn) * s.hidden
    moved = 2 * matrices / r.operands
    forward = (f1 + f2) / k.expert_matmul + moved
    return forward * s.sparse, ((b1 + b2) / k.expert_matmul + 2 * moved) * s.sparse
