"""Shapes of transformers: their parameters, and the operations that one token costs.

Counts are exact for the model that a `ModelShape` describes. Norms and biases count as parameters,
but their operations are negligible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from orchestration.errors import OrchestrationError

Kind = Literal["decoder", "encoder", "encoder-decoder", "custom"]
"""``custom``: of any architecture; its number of parameters is all that is known."""

Targets = Literal["attention", "all"]
"""Projections that LoRA adapts: the four of attention, or those of the feed-forward network too."""

BACKWARD: Final = 2
"""Backward operations per forward operation: one product for the gradient of the input, one for
that of the weight."""


class ModelError(OrchestrationError, ValueError):
    """A model's description contradicts itself, or lacks a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Attention whose keys, values and optionally queries pass a narrow projection (DeepSeek-V2).

    https://arxiv.org/abs/2405.04434
    """

    query_rank: int | None
    key_value_rank: int
    rotary_width: int
    """Part of a head's width that carries positions; all keys share it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """A transformer, described by what its memory and speed depend on."""

    name: str = "model"
    kind: Kind = "decoder"
    layers: int
    """Layers of the decoder, or of the encoder in a model without a decoder."""
    encoder_layers: int = 0
    """Layers of the encoder in front of a decoder."""
    hidden: int
    heads: int
    kv_heads: int
    head_width: int = 0
    """Width of one attention head; 0: `hidden` / `heads`."""
    value_width: int = 0
    """Width of a head's values; 0: `head_width`."""
    latent: LatentAttention | None = None
    attention_layers: int = 0
    """Layers with attention, in models where others have none (Mamba hybrids); 0: all."""
    window: int | None = None
    """Tokens in the sliding window of attention."""
    windowed_layers: int = 0
    ffn: int
    """Inner width of the feed-forward network, or of one expert."""
    gated: bool
    """The feed-forward network has three matrices (SwiGLU), not two."""
    experts: int = 0
    """Routed experts in a layer; 0: a dense model."""
    active_experts: int = 0
    """Experts that one token passes, including shared ones."""
    shared_experts: int = 0
    """Experts that every token passes."""
    shared_ffn: int = 0
    """Inner width of all shared experts together; 0: `shared_experts` times `ffn`."""
    dense_layers: int = 0
    """Layers of a mixture of experts that have a dense feed-forward network instead of experts."""
    dense_ffn: int = 0
    """Inner width of that dense feed-forward network."""
    vocabulary: int
    tied_embeddings: bool = False
    """Input and output embedding are one matrix."""
    has_head: bool = True
    """The model computes logits."""
    embedding_width: int = 0
    """Width of a token embedding that projections widen to `hidden` and back; 0: `hidden`."""
    head_projection: int = 0
    """Parameters of matrices between the last layer and the logits (BERT's transform)."""
    rotary: bool = True
    """Rotary positions and RMS norms, as in Llama; otherwise layer norms, as in GPT."""
    positions: int = 0
    """Number of learned position embeddings; 0: none."""
    layer_vectors: int = 0
    """Parameters in one layer's norms and biases."""
    encoder_layer_vectors: int = 0
    other_parameters: int = 0
    """Token types, final norms, poolers, biases of the head, and the like."""
    max_sequence: int | None = None
    """Longest sequence that the model was trained for, in tokens."""
    approximate: bool = False
    """The shape is a guess, so predictions need wider margins."""

    def __post_init__(self) -> None:
        """Refuse numbers that no transformer can have."""
        if problems := _problems(self):
            raise ModelError(f"model {self.name!r}: " + "; ".join(problems))

    # Widths.

    @property
    def key_width(self) -> int:
        """Width of the keys and queries of one head."""
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
        """Width of the values of all heads together: the output projection's input."""
        return self.heads * (self.value_width or self.key_width)

    @property
    def sparse_layers(self) -> int:
        """Number of layers with experts."""
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def shared_width(self) -> int:
        """Inner width of all shared experts together."""
        return self.shared_ffn or self.shared_experts * self.ffn

    @property
    def routed_experts(self) -> int:
        """Number of experts that the router picks for one token."""
        return self.active_experts - self.shared_experts

    @property
    def attentions(self) -> int:
        """Number of attentions in one layer: 2 in a decoder that also attends to an encoder."""
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
        """Parameters in the embedding and, unless tied to it, the output layer."""
        width = self.embedding_width or self.hidden
        matrices = 2 if self.has_head and not self.tied_embeddings else 1
        projections = 2 * width * self.hidden if self.embedding_width else 0
        tables = matrices * self.vocabulary * width + self.positions * self.hidden
        return tables + projections + self.head_projection

    @property
    def parameters(self) -> int:
        """Number of all parameters."""
        return self._layers(self.experts) + self.embedding_parameters + self._vectors

    @property
    def active_parameters(self) -> int:
        """Number of parameters that one token uses."""
        return self._layers(self.routed_experts) + self.embedding_parameters + self._vectors

    @property
    def expert_parameters(self) -> int:
        """Parameters in all routed experts, which expert parallelism divides."""
        return self.sparse_layers * self.experts * self.ffn_parameters

    @property
    def active_matrices(self) -> int:
        """Parameters in the layers that one token is multiplied with."""
        return self._layers(self.routed_experts)

    @property
    def head_matrices(self) -> int:
        """Parameters outside the layers that one token is multiplied with, for the logits."""
        width = self.embedding_width or self.hidden
        projections = 2 * width * self.hidden if self.embedding_width else 0
        logits = self.vocabulary * width if self.has_head else 0
        return logits + projections + self.head_projection

    def _layers(self, experts: int) -> int:
        """Count the matrices of all layers, with this many routed experts in each sparse layer."""
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
        """Parameters in the router of one layer and its shared experts."""
        return self.hidden * self.experts + self._network(self.shared_width)

    @property
    def _vectors(self) -> int:
        layers = self.layers * self.layer_vectors
        return layers + self.encoder_layers * self.encoder_layer_vectors + self.other_parameters

    def _network(self, width: int) -> int:
        return (3 if self.gated else 2) * self.hidden * width

    # Operations; a multiply-add counts as two.

    def attention_flops_per_token(self, sequence: int, *, causal: bool = False) -> float:
        """Count forward operations on scores and values of all layers, per token.

        `causal` leaves out the masked half of a decoder's own scores, as fused kernels do.
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
        """Count forward operations per token (encoder-decoder: per source and target token)."""
        products = 2.0 * (self.active_matrices + self.head_matrices)
        return products + self.attention_flops_per_token(sequence, causal=causal)

    def training_flops_per_token(self, sequence: int, *, causal: bool = False) -> float:
        """Count forward and backward operations per token without recomputation.

        That is about 6 N + 12 L h s, the numerator of model FLOP/s utilisation:
        https://arxiv.org/abs/2204.02311 appendix B.
        """
        return (1 + BACKWARD) * self.forward_flops_per_token(sequence, causal=causal)

    def lora_parameters(self, rank: int, targets: Targets = "attention") -> int:
        """Count the parameters of adapters on the projections of every layer.

        Each in x out matrix gets one of in x rank and one of rank x out
        (https://arxiv.org/abs/2106.09685).
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
    problems = [
        f"{name} must be at least 1, got {value}"
        for name in names
        if (value := getattr(shape, name)) < 1
    ]
    if problems:
        return problems
    if shape.heads % shape.kv_heads:
        problems.append(f"{shape.heads} heads can't share {shape.kv_heads} key-value heads evenly")
    if not shape.head_width and shape.hidden % shape.heads:
        problems.append(f"hidden size {shape.hidden} is not a multiple of {shape.heads} heads")
    if shape.experts and not 0 < shape.routed_experts <= shape.experts:
        problems.append(f"{shape.routed_experts} active experts of {shape.experts}")
    if shape.dense_layers > shape.layers:
        problems.append(f"{shape.dense_layers} dense layers of {shape.layers}")
    if shape.dense_layers and not shape.dense_ffn:
        problems.append("dense_ffn is required for dense layers")
    return problems
