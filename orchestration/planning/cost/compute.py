"""Computing time of one device: matrix products, attention, elementwise work, launches."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Final

from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.cost.rates import Rates
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes

_UNPACKED_SEPARATELY: Final = 25.5
"""Bytes per weight of 4 bits that AutoGPTQ's ``QuantLinear`` moves without a kernel of its own
(``auto_gptq/nn_modules/qlinear/qlinear_cuda.py``): shifting to 32 bits 4.5, to 8 bits 5, masking 2,
zeros by group 2, subtracting them 3, scales by group 4, and scaling 5."""

_EAGER: Final = (34.0, 88.0)
"""Kernels of a layer of transformers' Llama, forward and backward (traced with a dispatch mode of
PyTorch 2.13; views and shapes launch nothing)."""

_FUSED: Final = (16.0, 36.0)
"""The same with fused or compiled elementwise work: one kernel for each norm, rotary positions,
gating and attention beside the matrix products, and as many for gradients of inputs and weights."""

_NORM: Final = 7.0
"""Kernels that a norm takes more if it is not one."""

_ADAPTERS: Final = (50.0, 57.0)
"""Further kernels with adapters: of PEFT's LoRA on five to seven projections 40 to 58, and 45 to
69 (traced as above)."""

_ADAPTED: Final = {False: ((2.0, 12.0), (10.0, 8.0)), True: ((14.0, 12.0), (22.0, 8.0))}
"""Bytes per element of an adapted matrix's input and of its output that PEFT's LoRA moves, forward
and backward: with adapters in 16 bits, and with those in 32, to which the input is cast, and back
for the products (``forward`` of ``Linear`` in ``tuners/lora/layer.py``; a test counts them)."""

_UNPACKING: Final = 13.0
"""Kernels that unpack one matrix operator by operator."""

_HOOKS: Final = 18.0
"""Kernels in whose launching time DeepSpeed's ZeRO 3 runs its hooks around a module, in one pass:
370 microseconds beside 20 for an operator (CPU time of DeepSpeed 0.19.8 and PyTorch 2.13)."""

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
    forward, backward = f1 + f2, b1 + b2
    if s.ffn:
        f1, b1 = product_time(tokens, s.hidden, s.up / t, r)
        f2, b2 = product_time(tokens, s.ffn / t, s.hidden, r)
        forward += f1 + f2
        backward += b1 + b2
    forward, backward = forward * s.scale, backward * s.scale
    if s.experts:
        f1, b1 = _expert_time(c, s, tokens, r, k)
        forward += f1
        backward += b1
    if c.trainable is not None:
        # Frozen matrices have no gradients; those of adapters are products like any other's.
        passed = c.trainable * _passed(c, s)
        adapters = 2 * tokens * passed / s.layers / t / r.matmul_16
        forward, backward = forward + adapters, backward / 2 + 2 * adapters
    unpacked = _unpacking_time(c, s, r)
    forward, backward = forward + unpacked, backward + (0 if c.separate_unpacking else unpacked)
    attention_forward, attention_backward = attention_time(c, s, tokens, r, k)
    factor = k.elementwise_eager if c.kernels == "eager" else k.elementwise_fused
    moved = elementwise_bytes(c, s) * factor * c.element_bytes / 2 + cast_bytes(c, s, k)
    moved += factor * autocast_bytes(c, s)
    cast = factor * cast_weight_bytes(c, s) / tokens
    with_adapters = adapter_bytes(c, s)
    first, second = moved + cast + with_adapters[0], 2 * moved + cast + with_adapters[1]
    return LayerTime(
        forward, backward, attention_forward, attention_backward,
        first * tokens / r.memory, second * tokens / r.memory,
    )  # fmt: skip


def head_time(c: Configuration, s: Sizes, r: Rates, k: Coefficients) -> float:
    """Predict the output layer and the loss, both passes; in 16 bits whatever the layers use."""
    if not s.words:
        return 0.0
    tokens = c.micro_batch * c.sequence / c.context
    words = s.words / c.tensor
    forward, backward = product_time(tokens, s.hidden, words, r, r.matmul_16)
    read = float(s.words) if c.whole_logits else words
    return forward + backward + tokens * read * k.logit_bytes / r.memory


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
    moved = tokens * c.sequence * s.heads * s.attentions / c.tensor
    moved *= c.element_bytes / 2 / r.memory
    forward, backward = score_bytes(c, s)
    single = c.softmax == "fused" or c.kernels != "eager"
    factor = k.elementwise_fused if single else k.elementwise_eager
    # The two products write and read scores, and backward their gradients.
    forward, backward = 4 + factor * forward, 8 + factor * backward
    return seconds + forward * moved, 2 * seconds + backward * moved


def score_bytes(c: Configuration, s: Sizes) -> tuple[float, float]:
    """Return the bytes per score that the softmax's kernels move, in 16 bits: forward, backward.

    One kernel reads and writes (4), and backward reads a gradient and a result (6). Operators of
    their own also scale (4) and add a mask (4); in fp32, softmax and cast move 12, and backward
    16. Aleph Alpha's clone (4), and fill by a mask of one byte (5), backward too. Dropout reads,
    writes, and has a mask of one byte (5).
    """
    if c.softmax == "fused" or c.kernels != "eager":
        forward, backward = 4.0, 6.0
    elif c.softmax == "masked":
        forward, backward = 13.0, 15.0
    else:
        wide = c.softmax == "wide" and (s.rotary or c.autocast)
        forward, backward = (20.0, 20.0) if wide else (12.0, 10.0)
    dropped = 5 if c.dropout == "all" else 0
    return forward + dropped, backward + dropped


def elementwise_bytes(c: Configuration, s: Sizes) -> float:
    """Return the bytes per token that the forward elementwise kernels of a layer move, in 16 bits.

    A fused norm reads and writes 2 bytes per element, together 4; Llama's norm as single operators
    moves 36, a layer norm under autocast 12. Fused and as single operators, rotary positions move
    4 and 22 bytes, gating 6 and 10.
    """
    eager = c.kernels == "eager"
    norm = 4 if not eager or c.fused_norms else 36 if s.rotary else 12
    # Fused dropout adds a mask; an operator of its own reads and writes besides.
    residual = 6 + ((5 if eager else 1) if c.dropout != "none" else 0)
    split = c.tensor if c.sequence_parallel else 1
    position = (s.query + s.keys) * (22 if eager else 4) if s.rotary else 0
    routed = s.routed * padding(c, s)
    active = (s.ffn + routed * s.expert_ffn) * ((10 if eager else 6) if s.gated else 4)
    layout = 4 * (s.query + 2 * s.keys)
    # Padding clears a copy, fills it, and takes the results out in the same way.
    dispatch = 12 * s.routed * s.hidden * (2 if c.padded_experts else 1)
    return (
        (s.attentions + 1) * (norm + residual) * s.hidden / split
        + dispatch
        + (s.attentions * (position + layout) + active) / c.tensor
    )


def autocast_bytes(c: Configuration, s: Sizes) -> float:
    """Return the further bytes per token that operators move under autocast in the forward pass.

    What is between layers is in fp32: a sum moves 10 bytes for 6, Llama's norm 28 for 36, its
    rotary positions 36 for 22. Each projection casts its own input (6).
    """
    if not c.autocast or c.kernels != "eager":
        return 0.0
    sums = 4 - (8 if s.rotary else 0)
    position = 14 * (s.query + s.keys) if s.rotary else 0
    projections = 3 * s.attentions + (2 if s.gated else 1)
    return (sums * (s.attentions + 1) + 6 * projections) * s.hidden + s.attentions * position


def cast_weight_bytes(c: Configuration, s: Sizes) -> float:
    """Return the bytes by which autocast casts a layer's weights, and backward their gradients."""
    if not c.autocast:
        return 0.0
    return 6 * s.hidden * (s.query + s.keys_and_values + s.output + s.up + s.ffn) * s.scale


def cast_bytes(c: Configuration, s: Sizes, k: Coefficients) -> float:
    """Return the bytes per token that casting operands to 8 or 4 bits moves in the forward pass."""
    if not c.narrow:
        return 0.0
    routed = s.routed * (s.hidden + s.expert_ffn)
    return k.cast_bytes * (2 * s.hidden + (s.output + s.ffn) / c.tensor + routed)


def adapter_bytes(c: Configuration, s: Sizes) -> tuple[float, float]:
    """Return the bytes per token that the adapters of a layer move: forward, backward.

    Projections of attention have one, and with ``adapter_targets: all`` those of the feed-forward
    network and of each expert, too. Adapters beside weights of few bits are in fp32, and others in
    the weights' precision. Dropout reads and writes the input, and writes a mask.
    """
    if c.trainable is None:
        return 0.0, 0.0
    inputs, outputs = (
        s.scale * common + expert * s.routed * padding(c, s) / c.tensor
        for common, expert in zip(_adapted(c, s, c.tensor), _adapted_of_expert(c, s), strict=True)
    )
    wide = bool(c.frozen_bits)
    dropped = (9.0 if wide else 5.0) if c.adapter_dropout else 0.0
    forward, backward = (
        (each_input + dropped) * inputs + each_output * outputs
        for each_input, each_output in _ADAPTED[wide]
    )
    scale = c.element_bytes / 2
    return forward * scale, backward * scale


def _adapted(c: Configuration, s: Sizes, tensor: int) -> tuple[float, float]:
    """Return the widths of the inputs and outputs that every token's adapters have in a layer."""
    gate, ffn = 2 if s.gated else 1, s.ffn if c.adapter_targets == "all" else 0
    inputs = (3 + gate * bool(ffn)) * s.hidden + (s.output + ffn) / tensor
    networks = (gate * ffn) / tensor + (s.hidden if ffn else 0)
    return inputs, (s.query + s.keys_and_values) / tensor + s.hidden + networks


def _adapted_of_expert(c: Configuration, s: Sizes) -> tuple[float, float]:
    """Return the same of one routed expert, whose matrices have adapters of their own (PEFT's).

    An average layer has `s.sparse` of it.
    """
    if not s.experts or c.adapter_targets != "all":
        return 0.0, 0.0
    gate = 2 if s.gated else 1
    inputs, outputs = gate * s.hidden + s.expert_ffn, gate * s.expert_ffn + s.hidden
    return s.sparse * inputs, s.sparse * outputs


def _passed(c: Configuration, s: Sizes) -> float:
    """Return the share of the adapters' parameters that a token passes: not those of all experts.

    A matrix's adapter has as many parameters for each rank as it has inputs and outputs.
    """
    common, expert = s.scale * sum(_adapted(c, s, 1)), sum(_adapted_of_expert(c, s))
    return (common + s.routed * padding(c, s) * expert) / (common + s.experts * expert)


def padding(c: Configuration, s: Sizes) -> float:
    """Return the tokens that experts compute over those routed to them, at least.

    If the gate sends tokens anywhere alike, the fullest of many experts has this much more than
    its share (Blom's approximation of the largest of normal numbers). A gate that prefers some
    experts, as one does in the first steps, sends it more.
    """
    if not c.padded_experts or s.experts < 2:
        return 1.0
    each = c.micro_batch * c.sequence / c.context * s.routed / s.experts
    largest = NormalDist().inv_cdf((s.experts - 0.375) / (s.experts + 0.25))
    return 1 + largest * sqrt((1 - 1 / s.experts) / each)


def product_time(
    rows: float, inner: float, outer: float, r: Rates, rate: float = 0.0
) -> tuple[float, float]:
    """Predict a matrix product of ``rows x inner`` and ``inner x outer``: forward, backward.

    Multiprocessors compute tiles of the result in waves, the last of which is not full; memory
    traffic of operands and result is partly hidden. `rate` defaults to that of the configuration's
    precision.
    """
    work = 2 * rows * inner * outer / (rate or r.matmul)
    moved = 2 * (rows * inner + inner * outer + rows * outer) / r.operands
    forward = work * (1 + r.tail / (rows * outer)) + moved
    return forward, work * (2 + r.tail / (rows * inner)) * r.matmul_backward + 2 * moved


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
