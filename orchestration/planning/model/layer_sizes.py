"""Sizes that predictions need of a model, computed once per model and sequence length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from orchestration.planning.model.shapes import ModelShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Widths of an average layer before tensor parallelism, and totals of the whole model."""

    layers: int
    hidden: int
    heads: int
    head_width: int
    query: int
    """Width of all query heads together."""
    keys: int
    """Width of all key heads together."""
    keys_and_values: int
    output: int
    """Width of the input of attention's output projection."""
    up: float
    """Output width of the first product of the feed-forward network that every token passes."""
    ffn: float
    """Inner width of that network."""
    scale: float
    """Operations of the model's matrices over those of `layers` layers with these widths."""
    attentions: float
    """Attentions in a layer: 1.5 on average, where decoders also attend to encoders."""
    scores_causal: float
    """Operations on scores and values, per token and layer, without masked pairs."""
    scores: float
    """The same with masked pairs."""
    rotary: bool
    gated: bool
    words: int
    """Width of the output layer; 0: no output layer."""
    experts: int
    routed: int
    """Experts that the router picks for one token."""
    expert_ffn: int
    sparse: float
    """Fraction of the layers that have experts."""
    common_parameters: int
    """Parameters of all layers outside routed experts."""
    expert_parameters: int
    embedding_parameters: int
    tied: bool


@lru_cache(maxsize=1024)
def sizes(m: ModelShape, sequence: int) -> Sizes:
    """Return the sizes of a model for sequences of this many tokens."""
    gate = 2 if m.gated else 1
    keys_and_values = m.kv_heads * (m.key_width + (m.value_width or m.key_width))
    if m.experts:
        ffn = (m.sparse_layers * m.shared_width + m.dense_layers * m.dense_ffn) / m.layers
        router = m.sparse_layers * m.experts / m.layers
    else:
        ffn, router = float(m.ffn), 0.0
    attention = m.query_width + keys_and_values + m.output_width
    plain = m.hidden * (attention + (gate + 1) * ffn + router)
    real = m.active_matrices - m.sparse_layers * m.routed_experts * m.ffn_parameters
    layers = m.layers + m.encoder_layers
    return Sizes(
        layers=layers,
        hidden=m.hidden,
        heads=m.heads,
        head_width=m.key_width,
        query=m.query_width,
        keys=m.kv_width,
        keys_and_values=keys_and_values,
        output=m.output_width,
        up=gate * ffn + router,
        ffn=ffn,
        scale=real / (layers * plain),
        attentions=(m.layers * m.attentions + m.encoder_layers) / layers,
        scores_causal=m.attention_flops_per_token(sequence, causal=True) / layers,
        scores=m.attention_flops_per_token(sequence, causal=False) / layers,
        rotary=m.rotary,
        gated=m.gated,
        words=m.vocabulary if m.has_head else 0,
        experts=m.experts,
        routed=m.routed_experts if m.experts else 0,
        expert_ffn=m.ffn if m.experts else 0,
        sparse=m.sparse_layers / m.layers,
        common_parameters=m.parameters - m.embedding_parameters - m.expert_parameters,
        expert_parameters=m.expert_parameters,
        embedding_parameters=m.embedding_parameters,
        tied=m.tied_embeddings,
    )
