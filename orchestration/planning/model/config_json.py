"""Numbers of a Hugging Face ``config.json``, under one name for all families."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from orchestration.planning.model.families import Bias, Family
from orchestration.planning.model.shapes import LatentAttention, ModelError

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
"""Names that families have for the same number."""


@dataclass(frozen=True, slots=True)
class ConfigReader:
    """One model's configuration, read by the conventions of its family."""

    config: Mapping[str, object]
    """The file's content over the family's defaults; no value is ``None``."""
    family: Family
    kind: str
    """The configuration's ``model_type``."""

    def missing(self) -> list[str]:
        """Return the required numbers that are missing, by their possible names."""
        fields = ("layers", "hidden", "heads", "vocabulary")
        return [" or ".join(_KEYS[field]) for field in fields if self.first(field) is None]

    def number(self, key: str, default: int = 0) -> int:
        """Return the number at a key; raise a `ModelError` for any other value."""
        value = self.config.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ModelError(f"{key}: expected a number, got {value!r}")
        return int(value)

    def truth(self, key: str, default: bool = False) -> bool:
        """Return the boolean at a key; any other value counts as missing."""
        value = self.config.get(key, default)
        return value if isinstance(value, bool) else default

    def first(self, field: str) -> int | None:
        """Return a number under whichever name the configuration has for it."""
        keys = [key for key in _KEYS[field] if key in self.config]
        return self.number(keys[0]) if keys else None

    def required(self, field: str) -> int:
        """Return a number that `missing` has checked."""
        return self.first(field) or 0

    def bias(self, bias: Bias) -> bool:
        """Return whether a projection has biases."""
        return self.truth(bias) if isinstance(bias, str) else bias

    @property
    def layers(self) -> int:
        """Layers of the decoder, or of the encoder in a model without a decoder."""
        if self.kind == "t5":
            return self.number("num_decoder_layers", self.required("layers"))
        if self.family.kind == "encoder-decoder":
            return self.number("decoder_layers")
        return self.required("layers")

    @property
    def encoder_layers(self) -> int:
        """Layers of the encoder in front of a decoder."""
        if self.family.kind != "encoder-decoder":
            return 0
        return self.number("encoder_layers", self.required("layers"))

    @property
    def latent(self) -> LatentAttention | None:
        """Narrow projections of keys, values and queries."""
        if "kv_lora_rank" not in self.config:
            return None
        return LatentAttention(
            query_rank=self.number("q_lora_rank") or None,
            key_value_rank=self.number("kv_lora_rank"),
            rotary_width=self.number("qk_rope_head_dim"),
        )

    @property
    def head_width(self) -> int:
        """Width of one attention head; 0: `hidden` / `heads`."""
        if self.latent:
            return self.number("qk_nope_head_dim") + self.number("qk_rope_head_dim")
        return self.number("head_dim") or self.number("d_kv")

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values."""
        heads = self.required("heads")
        shared = self.truth("multi_query", self.kind == "falcon")
        if self.kind == "gpt_bigcode" or (self.kind == "falcon" and not self.falcon_40b):
            return 1 if shared else heads
        return self.first("kv_heads") or heads

    @property
    def falcon_40b(self) -> bool:
        """True if a Falcon has the layers of the 40B and 180B models."""
        return self.truth("new_decoder_architecture")

    @property
    def gated(self) -> bool:
        """True if the feed-forward network has three matrices."""
        if self.kind != "t5":
            return self.family.gated
        return str(self.config.get("feed_forward_proj", "relu")).startswith("gated")

    @property
    def norms(self) -> int:
        """Norms in one layer."""
        if self.kind == "falcon":
            parallel = 1 if self.truth("parallel_attn", default=True) else 2
            return self.number("num_ln_in_parallel_attn", 2) if self.falcon_40b else parallel
        if self.kind == "stablelm" and self.truth("use_parallel_residual"):
            return 1
        return self.family.norms

    @property
    def norms_after(self) -> bool:
        """True for OPT-350m, whose layers end with their norms, so that there is no final norm."""
        return not self.truth("do_layer_norm_before", default=True)

    @property
    def window(self) -> int | None:
        """Tokens in the sliding window of attention."""
        if not self.truth("use_sliding_window", default=True):
            return None
        return self.number("sliding_window") or self.number("window_size") or None

    @property
    def windowed_layers(self) -> int:
        """Layers whose attention has a sliding window."""
        if self.window is None:
            return 0
        types = self.config.get("layer_types", self.config.get("attention_layers"))
        if isinstance(types, list):
            return sum(kind in ("sliding_attention", "local") for kind in types)
        if self.kind == "gpt_neo":
            return self.layers // 2
        pattern = self.number("sliding_window_pattern")
        return self.layers - self.layers // pattern if pattern else self.layers

    @property
    def positions(self) -> int:
        """Learned position embeddings."""
        if self.family.positions is None:
            return 0
        tables = 2 if self.family.kind == "encoder-decoder" else 1
        return tables * (self.required("sequence") + self.family.positions)

    @property
    def embedding_width(self) -> int:
        """Width of a token embedding that projections widen to `hidden` and back; 0: `hidden`."""
        width = self.number("word_embed_proj_dim")
        return width if width != self.required("hidden") else 0

    @property
    def architecture(self) -> str:
        """The first class in ``architectures``; empty if there is none."""
        names = self.config.get("architectures")
        return str(names[0]) if isinstance(names, list) and names else ""

    @property
    def has_head(self) -> bool:
        """True if the model computes logits; encoders do so only to predict masked tokens."""
        if self.family.kind != "encoder" or not self.architecture:
            return True
        return self.architecture.endswith(("MaskedLM", "PreTraining", "LMHeadModel"))
