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
            return c.residual_bytes * s.hidden / split
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
    masks = parts if c.dropout != "none" else 0
    columns = parts * _norm(c, s) + _operands(c, s) + masks
    routed = _operand(c) * s.routed * s.hidden * s.sparse
    return columns * s.hidden / (c.tensor if c.sequence_parallel else 1) + routed


def _norm(c: Configuration, s: Sizes) -> int:
    """Return the bytes per column that a norm keeps.

    One kernel keeps its input. RMS norms written as single operators compute in fp32, and keep the
    input and, unless its weight is frozen, what is multiplied with the weight.
    """
    if c.kernels != "eager" or not s.rotary or c.fused_norms:
        return c.residual_bytes
    return 4 + (c.residual_bytes if c.trainable is None else 0)


def _operands(c: Configuration, s: Sizes) -> float:
    """Return the bytes per column of the inputs of the products after the norms.

    Products with the same input share it, unless each casts it for itself under autocast. One
    whose weight is frozen, without an adapter, keeps none.
    """
    wide = c.residual_bytes > c.element_bytes
    attention = s.attentions * (3 if wide else 1)
    network = 2 if wide and s.gated else 1
    return _operand(c) * (attention + (network if _trains_networks(c) else 0))


def _trains_networks(c: Configuration) -> bool:
    return c.trainable is None or c.adapter_targets == "all"


def _inside(c: Configuration, s: Sizes) -> float:
    """Queries, keys, values, attention's output, and the inside of the feed-forward network."""
    attention = c.element_bytes * (s.query + s.keys_and_values + s.output) * s.attentions
    results = (2 if s.gated else 1) * c.element_bytes
    if s.gated and c.kernels == "eager":
        results += c.element_bytes
    operand = _operand(c) if _trains_networks(c) else 0
    wide = (results + operand) * (s.ffn + s.routed * s.expert_ffn * s.sparse)
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
    # Models like Llama ask for a softmax in fp32, as autocast does for all.
    wide = c.softmax == "wide" and (s.rotary or c.autocast)
    softmax = 4 + c.element_bytes if wide else c.element_bytes
    # Dropout keeps its mask, and its result beside that of the softmax.
    dropped = 0 if c.dropout != "all" else 1 if wide else 1 + c.element_bytes
    return (softmax + dropped) * s.heads * s.attentions * c.sequence / c.context / c.tensor
