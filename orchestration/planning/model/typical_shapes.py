"""Shapes of typical decoders, from a few numbers or from the number of parameters alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from orchestration.planning.model.shapes import ModelError, ModelShape

_FEWEST: Final = 1_000_000
"""Fewest parameters for which a shape can be guessed."""


def transformer(
    *,
    layers: int,
    hidden: int,
    heads: int,
    vocabulary: int,
    kv_heads: int | None = None,
    ffn: int | None = None,
    gated: bool = True,
    tied_embeddings: bool = False,
    name: str = "model",
) -> ModelShape:
    """Return a decoder built like Llama: rotary positions, RMS norms, no biases.

    `ffn` defaults to 4 times `hidden`; if gated, to 8/3 of it, rounded up to a multiple of 256.
    """
    if min(layers, hidden, heads) < 1 or hidden % heads:
        raise ModelError(
            f"hidden size {hidden} is not a multiple of {heads} heads; {_divisor(hidden, heads)} "
            "heads would do"
        )
    usual = math.ceil(8 * hidden / 3 / 256) * 256 if gated else 4 * hidden
    return ModelShape(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads if kv_heads is None else kv_heads,
        ffn=usual if ffn is None else ffn,
        gated=gated,
        vocabulary=vocabulary,
        tied_embeddings=tied_embeddings,
        layer_vectors=2 * hidden,
        other_parameters=hidden,
    )


def _divisor(hidden: int, heads: int) -> int:
    """Return the number of heads nearest to what was asked that divides the hidden size."""
    divisors = (number for number in range(1, min(hidden, 10_000) + 1) if hidden % number == 0)
    return min(divisors, key=lambda number: abs(number - heads))


def of_size(parameters: float, *, vocabulary: int = 32_000, name: str = "model") -> ModelShape:
    """Guess a decoder from its number of parameters alone, and mark it `approximate`.

    Width and depth follow published decoders: GPT-3 from 125 million to 175 billion parameters
    (https://arxiv.org/abs/2005.14165, table 2.1) is 64 times as wide as deep at the small end and
    128 times at the large end. The number of parameters is kept exactly.
    """
    total = round(parameters)
    if total < _FEWEST:
        raise ModelError(
            f"{total:,} parameters are too few for a transformer; expected {_FEWEST:,} or more"
        )
    aspect = min(128.0, max(64.0, 64 + 20 * math.log10(total / 125e6)))
    wide = (total * aspect / 12) ** (1 / 3)
    # A wide model gets a multiple of eight heads, so that tensor parallelism divides them.
    step = 1024 if wide > 3500 else 256 if wide > 700 else 64
    hidden = max(64, round(wide / step) * step)
    head = 128 if total > 1_000_000_000 else 64
    vocabulary = max(256, min(vocabulary, total // (2 * hidden)))
    inside = total - vocabulary * hidden
    layers = max(1, round(inside / (12 * hidden * hidden)))
    shape = ModelShape(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=hidden // head,
        kv_heads=hidden // head,
        ffn=4 * hidden,
        gated=False,
        vocabulary=vocabulary,
        tied_embeddings=True,
        layer_vectors=2 * hidden,
        approximate=True,
    )
    wider = (total - shape.parameters) // (2 * layers * hidden)
    shape = replace(shape, ffn=max(64, shape.ffn + wider // 64 * 64))
    return replace(shape, other_parameters=total - shape.parameters)
