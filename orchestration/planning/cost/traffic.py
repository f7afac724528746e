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


def passed_share(c: Configuration, s: Sizes) -> float:
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
