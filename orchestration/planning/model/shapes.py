"""What a transformer is made of: matrices, vectors, and the operations that a token costs.

Counts are exact for what a `ModelShape` describes. Matrices are what matrix products read; norms
and biases are counted, too, but cost no operations worth the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from orchestration.errors import OrchestrationError

Kind = Literal["decoder", "encoder", "encoder-decoder"]
Targets = Literal["attention", "all"]
"""Which projections of a layer LoRA adapts: the four of attention, or the feed-forward's, too."""

BACKWARD: Final = 2
"""Backward operations per forward operation: one product for the gradient of the input, one for
that of the weight."""


class ModelError(OrchestrationError, ValueError):
    """A model's description contradicts itself, or too little is known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Keys and values, and maybe queries, go through a narrow projection (DeepSeek-V2).

    https://arxiv.org/abs/2405.04434
    """

    query_rank: int | None
    key_value_rank: int
    rotary_width: int
    """The part of a head's width that carries positions, shared by all keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """A transformer, as far as its memory and its speed depend on it."""

    name: str = "model"
    kind: Kind = "decoder"
    layers: int
    """Of the decoder, or of the encoder where there is no decoder."""
    encoder_layers: int = 0
    """Of the encoder in front of a decoder."""
    hidden: int
    heads: int
    kv_heads: int
    head_width: int = 0
    """Width of one attention head; 0: hidden / heads."""
    value_width: int = 0
    """Width of a head's values; 0: `head_width`."""
    latent: LatentAttention | None = None
    attention_layers: int = 0
    """Layers with attention where not all have it (Mamba hybrids); 0: all."""
    window: int | None = None
    """Tokens that a sliding window lets attention see."""
    windowed_layers: int = 0
    ffn: int
    """Inner width of the feed-forward network; of one expert where there are experts."""
    gated: bool
    """Three matrices in the feed-forward network (SwiGLU), not two."""
    experts: int = 0
    """Routed experts of a layer; 0: a dense model."""
    active_experts: int = 0
    """Experts that one token goes to, shared ones included."""
    shared_experts: int = 0
    """Experts that every token goes to."""
    shared_ffn: int = 0
    """Inner width of the shared experts together; 0: `shared_experts` times `ffn`."""
    dense_layers: int = 0
    """Layers of a mixture of experts that have a dense feed-forward network instead."""
    dense_ffn: int = 0
    """Inner width of that dense feed-forward network."""
    vocabulary: int
    tied_embeddings: bool = False
    """Input and output embedding are one matrix."""
    has_head: bool = True
    """Whether there are logits at all."""
    embedding_width: int = 0
    """Of the token embedding, where a projection leads to `hidden` and back; 0: `hidden`."""
    head_projection: int = 0
    """Parameters of matrices between the last layer and the logits (BERT's transform)."""
    rotary: bool = True
    """Rotary positions and RMS norms, as in Llama; else layer norms, as in GPT."""
    positions: int = 0
    """Learned position embeddings, in tokens; 0: none."""
    layer_vectors: int = 0
    """Parameters of one layer outside its matrices: norms and biases."""
    encoder_layer_vectors: int = 0
    other_parameters: int = 0
    """Token types, final norms, poolers, biases of the head, and the like."""
    max_sequence: int | None = None
    """Tokens that the model was made for."""
    approximate: bool = False
    """Guessed from a number of parameters: predictions need wider margins."""

    def __post_init__(self) -> None:
        """Refuse what no transformer can be."""
        if wrong := list(_problems(self)):
            raise ModelError(f"model {self.name!r}: " + "; ".join(wrong))

    # Widths.

    @property
    def key_width(self) -> int:
        """Width of one head's keys and queries."""
        return self.head_width or self.hidden // self.heads

    @property
    def query_width(self) -> int:
        """Width of all query heads together."""
        return self.heads * self.key_width

    @property
    def kv_width(self) -> int:
        """Width of all key heads together."""
        return self.kv_heads * self.key_width

    @property
    def output_width(self) -> int:
        """Width of all heads' values together, which the output projection reads."""
        return self.heads * (self.value_width or self.key_width)

    @property
    def sparse_layers(self) -> int:
        """Layers with experts."""
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def shared_width(self) -> int:
        """Inner width of the shared experts together."""
        return self.shared_ffn or self.shared_experts * self.ffn

    @property
    def routed_experts(self) -> int:
        """Experts that the router picks for one token."""
        return self.active_experts - self.shared_experts

    @property
    def attentions(self) -> int:
        """Attentions in one layer: 2 in a decoder that also attends to an encoder."""
        return 2 if self.kind == "encoder-decoder" else 1

    # Parameters.

    @property
    def attention_parameters(self) -> int:
        """Parameters in the projections of one attention."""
        output = self.output_width * self.hidden
        value = self.value_width or self.key_width
        if self.latent is None:
            keys_and_values = self.kv_heads * (self.key_width + value)
            return self.hidden * (self.query_width + keys_and_values) + output
        rank, rotary = self.latent.key_value_rank, self.latent.rotary_width
        low = self.latent.query_rank
        full = self.hidden * self.query_width
        queries = full if low is None else low * (self.hidden + self.query_width)
        carried = self.heads * (self.key_width - rotary + value)
        return queries + self.hidden * (rank + rotary) + rank * carried + output

    @property
    def ffn_parameters(self) -> int:
        """Parameters of one feed-forward network or expert."""
        return self._network(self.ffn)

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the embedding and, if it is another matrix, the output."""
        width = self.embedding_width or self.hidden
        matrices = 2 if self.has_head and not self.tied_embeddings else 1
        projections = 2 * width * self.hidden if self.embedding_width else 0
        tables = matrices * self.vocabulary * width + self.positions * self.hidden
        return tables + projections + self.head_projection

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self._layers(self.experts) + self.embedding_parameters + self._vectors

    @property
    def active_parameters(self) -> int:
        """Parameters that one token meets."""
        return self._layers(self.routed_experts) + self.embedding_parameters + self._vectors

    @property
    def expert_parameters(self) -> int:
        """Parameters of all routed experts: what expert parallelism divides."""
        return self.sparse_layers * self.experts * self.ffn_parameters

    @property
    def active_matrices(self) -> int:
        """Parameters that one token is multiplied with in the layers."""
        return self._layers(self.routed_experts)

    @property
    def head_matrices(self) -> int:
        """Parameters that one token is multiplied with outside the layers: for the logits."""
        width = self.embedding_width or self.hidden
        projections = 2 * width * self.hidden if self.embedding_width else 0
        logits = self.vocabulary * width if self.has_head else 0
        return logits + projections + self.head_projection

    def _layers(self, experts: int) -> int:
        """Matrices of all layers, with so many routed experts in each that has experts."""
        attentions = (self.attention_layers or self.layers) * self.attentions + self.encoder_layers
        networks = (
            self.encoder_layers + (0 if self.experts else self.layers)
        ) * self.ffn_parameters
        if self.experts:
            networks += self.dense_layers * self._network(self.dense_ffn)
            networks += self.sparse_layers * (self._routing + experts * self.ffn_parameters)
        return attentions * self.attention_parameters + networks

    @property
    def _routing(self) -> int:
        """The router of one layer and its shared experts."""
        return self.hidden * self.experts + self._network(self.shared_width)

    @property
    def _vectors(self) -> int:
        layers = self.layers * self.layer_vectors
        return layers + self.encoder_layers * self.encoder_layer_vectors + self.other_parameters

    def _network(self, width: int) -> int:
        return (3 if self.gated else 2) * self.hidden * width

    # Operations; a multiply and an add are two.

    def attention_flops_per_token(self, sequence: int, *, causal: bool = False) -> float:
        """Forward operations on scores and values, per token, of all layers.

        `causal` counts of a decoder's own scores only those that are seen, about half, as fused
        kernels compute.
        """
        window = min(sequence, self.window or sequence)
        full = (self.attention_layers or self.layers) - self.windowed_layers
        if causal and self.kind != "encoder":
            ramp = window * window / (2 * sequence)  # tokens at the start see less than a window
            own = full * sequence / 2 + self.windowed_layers * (window - ramp)
        else:
            own = full * sequence + float(self.windowed_layers * window)
        across = self.layers * sequence if self.kind == "encoder-decoder" else 0
        seen = own + across + self.encoder_layers * sequence
        return 2 * (self.query_width + self.output_width) * seen

    def forward_flops_per_token(self, sequence: int, *, causal: bool = False) -> float:
        """Forward operations per token; of an encoder-decoder per source and target token."""
        products = 2.0 * (self.active_matrices + self.head_matrices)
        return products + self.attention_flops_per_token(sequence, causal=causal)

    def training_flops_per_token(self, sequence: int, *, causal: bool = False) -> float:
        """Forward and backward operations per token, nothing recomputed: about 6 N + 12 L h s.

        The numerator of model FLOP/s utilisation, https://arxiv.org/abs/2204.02311 appendix B.
        """
        return (1 + BACKWARD) * self.forward_flops_per_token(sequence, causal=causal)

    def lora_parameters(self, rank: int, targets: Targets = "attention") -> int:
        """Parameters of adapters of a rank on the projections of every layer.

        https://arxiv.org/abs/2106.09685: in x rank and rank x out beside each in x out.
        """
        values = self.kv_heads * (self.value_width or self.key_width)
        sides = 4 * self.hidden + self.query_width + self.kv_width + values + self.output_width
        attentions = (self.attention_layers or self.layers) * self.attentions + self.encoder_layers
        if targets == "attention":
            return attentions * rank * sides
        dense = self.encoder_layers + (self.dense_layers if self.experts else self.layers)
        networks = dense * (self.hidden + (self.dense_ffn if self.experts else self.ffn))
        networks += self.sparse_layers * self.experts * (self.hidden + self.ffn)
        if self.shared_width:
            networks += self.sparse_layers * (self.hidden + self.shared_width)
        return rank * (attentions * sides + (3 if self.gated else 2) * networks)


def _problems(shape: ModelShape) -> list[str]:
    names = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocabulary")
    wrong = [f"{name} is {getattr(shape, name)}" for name in names if getattr(shape, name) < 1]
    if wrong:
        return wrong
    if shape.heads % shape.kv_heads:
        wrong.append(f"{shape.heads} heads can't share {shape.kv_heads} key-value heads evenly")
    if not shape.head_width and shape.hidden % shape.heads:
        wrong.append(f"hidden size {shape.hidden} is not a multiple of {shape.heads} heads")
    if shape.experts and not 0 < shape.routed_experts <= shape.experts:
        wrong.append(f"{shape.routed_experts} of {shape.experts} experts are active")
    if shape.dense_layers > shape.layers:
        wrong.append(f"{shape.dense_layers} of {shape.layers} layers are dense")
    if shape.dense_layers and not shape.dense_ffn:
        wrong.append("some layers are dense, and dense_ffn is not given")
    return wrong
