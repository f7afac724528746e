"""Activations that a transformer layer keeps for its backward pass.

The counts are those of "Reducing Activation Recomputation in Large Transformer Models"
(https://arxiv.org/abs/2205.05198, section 4), extended to grouped queries, gated feed-forward
networks, experts, and attention kernels that do not store scores.
"""

from __future__ import annotations

from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes


def layer_bytes(c: Configuration, s: Sizes) -> float:
    """Return the bytes per token that one layer keeps without recomputation."""
    return _outside(c, s) + _inside(c, s) + _scores(c, s)


def kept_bytes(c: Configuration, s: Sizes) -> float:
    """Return the bytes per token that one layer keeps, averaged over the layers."""
    return kept_and_recomputed_bytes(c, s)[0]


def kept_and_recomputed_bytes(c: Configuration, s: Sizes) -> tuple[float, float]:
    """Return the bytes per token that an average layer keeps, and that one layer recomputes."""
    everything = layer_bytes(c, s)
    dropped = everything - _kept(c, s, everything)
    return everything - dropped * c.recompute_share, dropped if c.recompute_share else 0.0


def _kept(c: Configuration, s: Sizes, everything: float) -> float:
    """Return the bytes per token that a layer keeps if it is recomputed."""
    split = c.tensor if c.sequence_parallel else 1
    match c.recompute:
        case "full":
            return c.element_bytes * s.hidden / split
        case "attention":
            return everything - _scores(c, s)
        case "operators":
            # The layer's input, the result of every other matrix product, and attention's output.
            kept = c.element_bytes * (2 * s.hidden / split + (s.output + s.up) / c.tensor)
            return min(kept, everything)
        case _:
            return everything


def _outside(c: Configuration, s: Sizes) -> float:
    """Inputs of norms and of the products after them, which tensor parallelism does not split."""
    parts = s.attentions + 1
    inputs = parts * (c.element_bytes + _operand(c)) * s.hidden
    masks = parts * s.hidden if c.dropout != "none" else 0
    # Norms written as single operators keep intermediate results (LitGPT's Llama 2: 6 of the
    # 43 bytes per column and token of a layer).
    single = c.kernels == "eager" and s.rotary and not c.fused_norms
    eager = 3 * parts * s.hidden if single else 0
    routed = _operand(c) * s.routed * s.hidden * s.sparse
    return (inputs + masks + eager) / (c.tensor if c.sequence_parallel else 1) + routed


def _inside(c: Configuration, s: Sizes) -> float:
    """Queries, keys, values, attention's output, and the inside of the feed-forward network."""
    attention = c.element_bytes * (s.query + s.keys_and_values + s.output) * s.attentions
    results = (2 if s.gated else 1) * c.element_bytes
    if s.gated and c.kernels == "eager":
        results += c.element_bytes
    wide = (results + _operand(c)) * (s.ffn + s.routed * s.expert_ffn * s.sparse)
    return (attention + wide) / c.tensor


def _operand(c: Configuration) -> int:
    """Bytes per element of an operand that the backward pass reads again."""
    return (
        1 if c.precision in ("fp8", "mxfp8", "nvfp4") and c.kernels == "fused" else c.element_bytes
    )


def _scores(c: Configuration, s: Sizes) -> float:
    """Attention scores after softmax and after dropout, and the mask of dropout."""
    if c.attention != "unfused":
        return 4 * s.heads * s.attentions / c.tensor
    each = 5 if c.dropout == "all" else 2
    return each * s.heads * s.attentions * c.sequence / c.context / c.tensor
