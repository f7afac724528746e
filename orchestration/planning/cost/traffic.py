"""Memory traffic of elementwise work: bytes that a layer's kernels move for each token or score."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import Final

from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes

_ADAPTED: Final = {False: ((2.0, 12.0), (10.0, 8.0)), True: ((14.0, 12.0), (22.0, 8.0))}
"""Bytes per element of an adapted matrix's input and of its output that PEFT's LoRA moves, forward
and backward: with adapters in 16 bits, and with those in 32, to which the input is cast, and back
for the products (``forward`` of ``Linear`` in ``tuners/lora/layer.py``; a test counts them)."""


_LLAMA_NORM: Final = (48.0, 111.0)
_LLAMA_NORM_OF_FP32: Final = (35.0, 107.0)
_LAYER_NORM_OF_FP32: Final = (12.0, 30.0)
_FUSED_NORM: Final = (6.0, 17.0)
"""Bytes per element that norms move, forward and backward: that of transformers' Llama, operator by
operator, of 16 bits and under autocast; PyTorch's ``layer_norm`` of fp32; and its kernels of 16
bits. These and those below were measured on one H100 with PyTorch 2.11 on 2026-11-27, as the bytes
that a copy moves in their time (``tests/data/planner/traffic.csv``)."""

_NORM_OF_CASTS: Final = (16.0, 34.0)
"""The same with a cast of its input to fp32: a kernel of fp32 whose result has 16 bits, and a cast
(counted from those above)."""

_ROTARY: Final = (43.0, 53.0)
_ROTARY_OF_FP32: Final = (69.0, 86.0)
"""The same per query and key of rotary positions, operator by operator (transformers')."""

_ROTARY_OF_CASTS: Final = (20.0, 20.0)
_ROTARY_KERNEL: Final = (4.0, 4.0)
"""The same of flash-attention's kernel, on values that are cast to fp32 and back, and as they are
(counted: it reads and writes them once)."""

_ACTIVATION: Final = {"kernel": (4.0, 6.0), "biased": (12.0, 8.0), "tanh": (36.0, 56.0)}
"""The same per element inside a network without gates: GELU, the same of a sum with a bias, and
operator by operator, with tanh."""

_GATING: Final = (10.0, 18.0)
"""The same per gated element: ``silu(gate) * up``."""

_SUM: Final = (6.0, 8.0)
"""The same per element of a residual sum; backward another sum joins the gradients."""

_SOFTMAX: Final = {
    "masked": (21.0, 25.0), "wide": (36.0, 43.0), "operators": (20.0, 16.0), "cast": (32.0, 48.0),
}  # fmt: skip
"""The same per score: Aleph Alpha's clone, fill and softmax; a scale, a mask and a softmax in fp32
that is cast; these three in 16 bits; and a cast, a scale, a softmax and a cast back."""

_DROPOUT: Final = (6.0, 5.0)
"""The same of dropout: it reads, writes, and has a mask of one byte."""

_FRESH_GATE: Final = 0.96
"""Share of all tokens that the fullest expert of a fresh gate has: on average of 8 and 16."""


def score_bytes(c: Configuration, s: Sizes) -> tuple[float, float]:
    """Return the bytes per score that the softmax's kernels move, in 16 bits: forward, backward.

    One kernel reads and writes (4), and backward reads a gradient and a result (6). In fp32 it is
    for models like Llama, and for all under autocast.
    """
    if one_softmax(c):
        forward, backward = 4.0, 6.0
    elif c.softmax == "wide" and not (s.rotary or c.autocast):
        forward, backward = _SOFTMAX["operators"]
    else:
        forward, backward = _SOFTMAX[c.softmax]
    if c.dropout == "all":
        forward, backward = forward + _DROPOUT[0], backward + _DROPOUT[1]
    return forward, backward


def one_softmax(c: Configuration) -> bool:
    """Return whether one kernel scales and masks scores and takes their softmax."""
    return c.softmax == "fused" or (c.kernels != "eager" and c.softmax != "cast")


def elementwise_bytes(c: Configuration, s: Sizes) -> tuple[float, float]:
    """Return the bytes per token that a layer's elementwise kernels move: forward, backward.

    Those of 16 bits. Fused kernels read their inputs and write their results once.
    """
    eager = c.kernels == "eager"
    norm = _norm(c, s)
    total, dropped = _SUM, _DROPOUT if eager else (1.0, 1.0)
    position = _positions(c)
    if eager and c.autocast:
        total = (10.0, 12.0)  # in fp32, and each projection casts its own input (6)
    gating = _GATING if eager else (6.0, 10.0)
    single = _ACTIVATION["kernel" if c.kernels == "compiled" else c.activation]
    split = c.tensor if c.sequence_parallel else 1
    routed = 0.0 if c.fused_experts else s.routed * padding(c, s)
    active = s.ffn + routed * s.expert_ffn
    casts = 3 * s.attentions + (2 if s.gated else 1) if eager and c.autocast else 0.0
    # Padding clears a copy, fills it, and takes the results out in the same way.
    dispatch = 12 * s.routed * s.hidden * (2 if c.padded_experts else 1)

    def moved(back: int) -> float:
        residual = total[back] + (dropped[back] if c.dropout != "none" else 0.0)
        activation = gating[back] if s.gated else single[back]
        placed = (s.query + s.keys) * position[back] if s.rotary else 0.0
        layout = 4 * (s.query + 2 * s.keys)
        return (
            (s.attentions + 1) * (norm[back] + residual) * s.hidden / split
            + (1 + back) * (dispatch + 6 * casts * s.hidden)
            + (s.attentions * (placed + layout) + active * activation) / c.tensor
        )

    return moved(0), moved(1)


def _norm(c: Configuration, s: Sizes) -> tuple[float, float]:
    """Return the bytes per element that one norm moves: forward, backward."""
    if c.kernels != "eager" or c.fused_norms:
        return _NORM_OF_CASTS if c.cast_norms else _FUSED_NORM
    if not s.rotary:
        return _LAYER_NORM_OF_FP32
    return _LLAMA_NORM_OF_FP32 if c.autocast else _LLAMA_NORM


def _positions(c: Configuration) -> tuple[float, float]:
    """Return the bytes that rotary positions move per query and key: forward, backward."""
    if c.kernels != "eager" or c.positions == "kernel":
        return _ROTARY_KERNEL
    if c.positions == "cast":
        return _ROTARY_OF_CASTS
    return _ROTARY_OF_FP32 if c.autocast else _ROTARY


def cast_weight_bytes(c: Configuration, s: Sizes) -> float:
    """Return the bytes by which autocast casts a layer's weights, and backward their gradients."""
    if not c.autocast:
        return 0.0
    return 6 * s.hidden * (s.query + s.keys_and_values + s.output + s.up + s.ffn) * s.scale


def cast_bytes(c: Configuration, s: Sizes, k: Coefficients) -> float:
    """Return the bytes per token that casting operands to 8 or 4 bits moves in the forward pass."""
    if not c.narrow:
        return 0.0
    routed = s.routed * (s.hidden + (0 if c.fused_experts else s.expert_ffn))
    return k.cast_bytes * (2 * s.hidden + (s.output + s.ffn) / c.tensor + routed)


def adapter_bytes(c: Configuration, s: Sizes) -> tuple[float, float]:
    """Return the bytes per token that the adapters of a layer move: forward, backward.

    Projections of attention have one, and with ``adapter_targets: all`` those of the feed-forward
    network and of each expert, too. Adapters beside weights of few bits are in fp32, and others in
    the weights' precision, to which DeepSpeed casts the whole model (``module.half()`` in its
    ``engine.py``). Dropout reads and writes the input, and writes a mask.
    """
    if c.trainable is None:
        return 0.0, 0.0
    inputs, outputs = (
        s.scale * common + expert * s.routed * padding(c, s) / c.tensor
        for common, expert in zip(_adapted(c, s, c.tensor), _adapted_of_expert(c, s), strict=True)
    )
    wide = bool(c.frozen_bits) and not c.deepspeed
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


def passed_share(c: Configuration, s: Sizes) -> float:
    """Return the share of the adapters' parameters that a token passes: not those of all experts.

    A matrix's adapter has as many parameters for each rank as it has inputs and outputs.
    """
    common, expert = s.scale * sum(_adapted(c, s, 1)), sum(_adapted_of_expert(c, s))
    return (common + s.routed * padding(c, s) * expert) / (common + s.experts * expert)


def padding(c: Configuration, s: Sizes) -> float:
    """Return the tokens that experts compute over those routed to them.

    If the gate sends tokens anywhere alike, the fullest of many experts has this much more than
    its share (Blom's approximation of the largest of normal numbers). A fresh gate learns first
    what is common to all tokens, and sends nearly all of them to the same experts: in steps 11 to
    20 the fullest of 8 has 4.0 times its share, and of 16 7.4 times, where two for each token leave
    4 and 8 (KempnerForge's model and optimizer on one H100; tests/data/planner/README.md).
    """
    if not c.padded_experts or s.experts < 2:
        return 1.0
    if c.fresh_gate:
        return max(1.0, _FRESH_GATE * s.experts / s.routed)
    each = c.micro_batch * c.sequence / c.context * s.routed / s.experts
    largest = NormalDist().inv_cdf((s.experts - 0.375) / (s.experts + 0.25))
    return 1 + largest * sqrt((1 - 1 / s.experts) / each)
