"""Model shapes from Hugging Face's ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from orchestration.planning.model.families import FAMILIES, Bias, Family
from orchestration.planning.model.shapes import LatentAttention, ModelError, ModelShape

_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers"),
    "hidden": ("hidden_size", "n_embd", "n_embed", "d_model", "dim"),
    "heads": (
        "num_attention_heads",
        "n_head",
        "n_heads",
        "num_heads",
        "decoder_attention_heads",
    ),
    "kv_heads": ("num_key_value_heads", "num_kv_heads"),
    "ffn": (
        "intermediate_size",
        "n_inner",
        "ffn_dim",
        "d_ff",
        "ffn_hidden_size",
        "hidden_dim",
        "decoder_ffn_dim",
    ),
    "vocabulary": ("vocab_size",),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "sequence": ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx"),
}
"""What families call the same number."""


def from_config(config: Mapping[str, object], name: str | None = None) -> ModelShape:
    """The shape of a model from the content of its ``config.json``.

    Exact for the families of `FAMILIES`; another decoder is read as if it were built as Llama and
    marked `approximate`, and so is the text part of a model of several modalities.

    Raises:
        ModelError: a number is missing or the family can't be read; names all of them.
    """
    text = config.get("text_config")
    if isinstance(text, Mapping):
        return replace(from_config(text, name), approximate=True)
    kind = str(config.get("model_type", ""))
    family = FAMILIES.get(kind)
    if family is None and config.get("is_encoder_decoder"):
        known = sorted(one for one in FAMILIES if FAMILIES[one].kind == "encoder-decoder")
        raise ModelError(
            f"models of type {kind!r} can't be read; of encoder-decoders {', '.join(known)} can. "
            "Give the number of parameters instead"
        )
    known_family = family or FAMILIES["llama"]
    reader = _Reader({**known_family.defaults, **_told(config)}, known_family, kind)
    shape = reader.shape(name or str(config.get("_name_or_path") or kind or "model"))
    return shape if family is not None else replace(shape, approximate=True)


def _told(config: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in config.items() if value is not None}


@dataclass(frozen=True, slots=True)
class _Reader:
    config: Mapping[str, object]
    family: Family
    kind: str

    def shape(self, name: str) -> ModelShape:
        self.refuse_gaps(name)
        plain = self.first("ffn") or round(
            self.number("expansion_ratio", 4) * self.required("hidden")
        )
        base = ModelShape(
            name=name,
            kind=self.family.kind,
            layers=self.layers,
            encoder_layers=self.encoder_layers,
            hidden=self.required("hidden"),
            heads=self.required("heads"),
            kv_heads=self.kv_heads,
            head_width=self.head_width,
            value_width=self.number("v_head_dim") if self.latent else 0,
            latent=self.latent,
            window=self.window,
            windowed_layers=self.windowed_layers,
            ffn=plain,
            gated=self.gated,
            vocabulary=self.required("vocabulary"),
            tied_embeddings=self.truth("tie_word_embeddings", self.family.tied),
            has_head=self.has_head,
            embedding_width=self.embedding_width,
            rotary=self.family.norm_size < 2,
            positions=self.positions,
            max_sequence=self.first("sequence"),
        )
        return self.with_vectors(self.with_experts(base))

    def refuse_gaps(self, name: str) -> None:
        fields = ("layers", "hidden", "heads", "vocabulary")
        gaps = [" or ".join(_KEYS[one]) for one in fields if self.first(one) is None]
        if gaps:
            raise ModelError(f"the configuration of {name!r} lacks {'; '.join(gaps)}")

    # Reading.

    def number(self, key: str, default: int = 0) -> int:
        value = self.config.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ModelError(f"{key} is {value!r}; it has to be a number")
        return int(value)

    def truth(self, key: str, default: bool = False) -> bool:
        value = self.config.get(key, default)
        return value if isinstance(value, bool) else default

    def first(self, field: str) -> int | None:
        keys = [key for key in _KEYS[field] if key in self.config]
        return self.number(keys[0]) if keys else None

    def required(self, field: str) -> int:
        return self.first(field) or 0

    def bias(self, bias: Bias) -> bool:
        return self.truth(bias) if isinstance(bias, str) else bias

    # Sizes.

    @property
    def layers(self) -> int:
        if self.kind == "t5":
            return self.number("num_decoder_layers", self.required("layers"))
        if self.family.kind == "encoder-decoder":
            return self.number("decoder_layers")
        return self.required("layers")

    @property
    def encoder_layers(self) -> int:
        if self.family.kind != "encoder-decoder":
            return 0
        return self.number("encoder_layers", self.required("layers"))

    @property
    def latent(self) -> LatentAttention | None:
        if "kv_lora_rank" not in self.config:
            return None
        return LatentAttention(
            query_rank=self.number("q_lora_rank") or None,
            key_value_rank=self.number("kv_lora_rank"),
            rotary_width=self.number("qk_rope_head_dim"),
        )

    @property
    def head_width(self) -> int:
        if self.latent:
            return self.number("qk_nope_head_dim") + self.number("qk_rope_head_dim")
        return self.number("head_dim") or self.number("d_kv")

    @property
    def kv_heads(self) -> int:
        heads = self.required("heads")
        one = self.truth("multi_query", self.kind == "falcon")
        if self.kind == "gpt_bigcode" or (self.kind == "falcon" and not self.falcon_40b):
            return 1 if one else heads
        return self.first("kv_heads") or heads

    @property
    def falcon_40b(self) -> bool:
        """Whether a Falcon has the layers of the 40B and 180B models."""
        return self.truth("new_decoder_architecture")

    @property
    def gated(self) -> bool:
        if self.kind != "t5":
            return self.family.gated
        return str(self.config.get("feed_forward_proj", "relu")).startswith("gated")

    @property
    def norms(self) -> int:
        if self.kind == "falcon":
            parallel = 1 if self.truth("parallel_attn", default=True) else 2
            return self.number("num_ln_in_parallel_attn", 2) if self.falcon_40b else parallel
        if self.kind == "stablelm" and self.truth("use_parallel_residual"):
            return 1
        return self.family.norms

    @property
    def window(self) -> int | None:
        if not self.truth("use_sliding_window", default=True):
            return None
        return self.number("sliding_window") or self.number("window_size") or None

    @property
    def windowed_layers(self) -> int:
        if self.window is None:
            return 0
        types = self.config.get("layer_types", self.config.get("attention_layers"))
        if isinstance(types, list):
            return sum(one in ("sliding_attention", "local") for one in types)
        if self.kind == "gpt_neo":
            return self.layers // 2
        pattern = self.number("sliding_window_pattern")
        return self.layers - self.layers // pattern if pattern else self.layers

    @property
    def positions(self) -> int:
        if self.family.positions is None:
            return 0
        tables = 2 if self.family.kind == "encoder-decoder" else 1
        return tables * (self.required("sequence") + self.family.positions)

    @property
    def embedding_width(self) -> int:
        width = self.number("word_embed_proj_dim")
        return width if width != self.required("hidden") else 0

    @property
    def architecture(self) -> str:
        named = self.config.get("architectures")
        return str(named[0]) if isinstance(named, list) and named else ""

    @property
    def has_head(self) -> bool:
        """Whether there are logits: of encoders only where they learn to fill in a mask."""
        if self.family.kind != "encoder" or not self.architecture:
            return True
        return self.architecture.endswith(("MaskedLM", "PreTraining", "LMHeadModel"))

    # What is beside the plain matrices.

    def with_experts(self, shape: ModelShape) -> ModelShape:
        experts = self.first("experts")
        if not experts:
            return shape
        shared = self.number("n_shared_experts")
        step, sparse = self.number("decoder_sparse_step", 1), self.config.get("mlp_only_layers")
        dense = set(sparse) if isinstance(sparse, list) else set()
        dense |= {one for one in range(shape.layers) if (one + 1) % step}
        dense |= set(range(self.number("first_k_dense_replace")))
        return replace(
            shape,
            ffn=self.number("moe_intermediate_size", shape.ffn),
            experts=experts,
            active_experts=self.number("num_experts_per_tok", 1) + shared,
            shared_experts=shared,
            shared_ffn=self.number("shared_expert_intermediate_size"),
            dense_layers=len(dense),
            dense_ffn=shape.ffn if dense else 0,
        )

    def with_vectors(self, shape: ModelShape) -> ModelShape:
        family, hidden = self.family, shape.hidden
        norm = family.norm_size * hidden
        attention = self.attention_vectors(shape)
        widths = shape.ffn * (2 if shape.gated else 1)
        ffn = widths + hidden if self.bias(family.ffn_bias) else 0
        halves = 2 if family.kind == "encoder-decoder" else 1
        other = norm * halves * (family.final_norm and not self.norms_after)
        if family.embedding_norm:
            other += norm * halves
        if family.head_bias:
            other += shape.vocabulary
        if shape.shared_ffn:  # the gate that weighs the shared expert
            other += shape.sparse_layers * hidden
        other += (
            2
            * self.number("relative_attention_num_buckets", 32)
            * shape.heads
            * (self.kind == "t5")
        )
        shape = replace(
            shape,
            layer_vectors=self.norms * norm + shape.attentions * attention + ffn,
            encoder_layer_vectors=2 * norm + attention + ffn,
            other_parameters=other,
        )
        return self.with_encoder_head(shape) if family.kind == "encoder" else shape

    @property
    def norms_after(self) -> bool:
        """OPT-350m's layers end with their norms, and no other follows."""
        return not self.truth("do_layer_norm_before", default=True)

    def attention_vectors(self, shape: ModelShape) -> int:
        query = self.family.query_norm
        if self.truth("qk_layernorm") or self.truth("use_qk_norm"):
            query = "all"
        norms = {"": 0, "head": 2 * shape.key_width, "all": shape.query_width + shape.kv_width}
        vectors = norms[query]
        if self.bias(self.family.query_bias):
            vectors += shape.query_width + 2 * shape.kv_width
        if self.bias(self.family.output_bias):
            vectors += shape.hidden
        if shape.latent is not None:
            vectors += (shape.latent.query_rank or 0) + shape.latent.key_value_rank
        return vectors

    def with_encoder_head(self, shape: ModelShape) -> ModelShape:
        hidden, other = shape.hidden, shape.other_parameters
        if self.kind != "distilbert":
            other += self.number("type_vocab_size", 2) * hidden
        if shape.has_head:  # a transform with its norm, and a bias per word
            vectors = 3 * hidden + shape.vocabulary
            return replace(shape, head_projection=hidden * hidden, other_parameters=other + vectors)
        if self.kind == "distilbert" and self.architecture.endswith("Model"):
            return replace(shape, other_parameters=other)
        labels = self.config.get("id2label")
        count = len(labels) if isinstance(labels, Mapping) else 2
        labelled = 0 if self.architecture.endswith("Model") else count * (hidden + 1)
        return replace(shape, other_parameters=other + hidden * (hidden + 1) + labelled)
