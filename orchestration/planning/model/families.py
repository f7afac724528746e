"""Model families: facts that a Hugging Face ``config.json`` leaves out.

Each row was checked against the parameters of transformers 5.23.0, module by module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from orchestration.planning.model.shapes import Kind

Bias = bool | str
"""True if a projection has biases, or the name of the configuration's key that says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Structure of the models of one ``model_type``."""

    kind: Kind = "decoder"
    gated: bool = True
    tied: bool = False
    """Tied embeddings, unless the configuration says otherwise."""
    norms: int = 2
    """Norms in one layer (of the decoder, including its attention to an encoder)."""
    norm_size: Literal[0, 1, 2] = 1
    """Vectors in one norm: 2 for layer norm, 1 without bias (or RMS norm), 0 without both."""
    query_norm: Literal["", "head", "all"] = ""
    """Norms of queries and keys: none, over the width of one head, over that of all heads."""
    query_bias: Bias = False
    """Biases of queries, keys and values."""
    output_bias: Bias = False
    ffn_bias: Bias = False
    head_bias: bool = False
    positions: int | None = None
    """Learned positions beyond ``max_position_embeddings``; ``None``: none are learned."""
    images: bool = False
    """Samples are images, cut into patches."""
    embedding_norm: bool = False
    final_norm: bool = True
    defaults: Mapping[str, object] = field(default_factory=dict)
    """Values of keys that this family's configurations leave out."""


IMAGES: Final[Mapping[str, object]] = {
    "image_size": 224, "patch_size": 16, "num_channels": 3, "hidden_size": 768,
    "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
}  # fmt: skip
"""Sizes that configurations of vision transformers leave out."""

_LLAMA: Final = Family(
    query_bias="attention_bias", output_bias="attention_bias", ffn_bias="mlp_bias"
)
_BERT: Final = Family(
    kind="encoder", gated=False, norm_size=2, tied=True, query_bias=True, output_bias=True,
    ffn_bias=True, positions=0, embedding_norm=True, final_norm=False,
)  # fmt: skip
_VIT: Final = Family(
    kind="encoder", gated=False, norm_size=2, query_bias="qkv_bias", output_bias=True,
    ffn_bias=True, positions=0, images=True, defaults={**IMAGES, "qkv_bias": True},
)  # fmt: skip
_DEEPSEEK: Final = Family(output_bias="attention_bias")

FAMILIES: Final[Mapping[str, Family]] = {
    "bart": Family(
        kind="encoder-decoder", gated=False, norm_size=2, tied=True, norms=3, query_bias=True,
        output_bias=True, ffn_bias=True, positions=2, embedding_norm=True, final_norm=False,
        defaults={"vocab_size": 50265},
    ),
    "bert": _BERT,
    "bloom": Family(
        gated=False, norm_size=2, tied=True, query_bias=True, output_bias=True, ffn_bias=True,
        embedding_norm=True,
    ),
    "cohere": Family(tied=True, norms=1, query_bias="attention_bias", output_bias="attention_bias"),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "deit": _VIT,
    "distilbert": _BERT,
    "falcon": Family(
        gated=False, norm_size=2, tied=True, query_bias="bias", output_bias="bias",
        ffn_bias="bias",
    ),
    "gemma": Family(
        tied=True, query_bias="attention_bias", output_bias="attention_bias",
        defaults={"head_dim": 256},
    ),
    "gemma2": Family(
        tied=True, norms=4, query_bias="attention_bias", output_bias="attention_bias",
        defaults={"head_dim": 256, "sliding_window": 4096, "sliding_window_pattern": 2},
    ),
    "gemma3_text": Family(
        tied=True, norms=4, query_norm="head", query_bias="attention_bias",
        output_bias="attention_bias", defaults={"head_dim": 256, "sliding_window_pattern": 6},
    ),
    "gpt2": Family(
        gated=False, norm_size=2, tied=True, query_bias=True, output_bias=True, ffn_bias=True,
        positions=0,
    ),
    "gpt_bigcode": Family(
        gated=False, norm_size=2, tied=True, query_bias=True, output_bias=True, ffn_bias=True,
        positions=0, defaults={"multi_query": True},
    ),
    "gpt_neo": Family(
        gated=False, norm_size=2, tied=True, output_bias=True, ffn_bias=True, positions=0,
    ),
    "gpt_neox": Family(
        gated=False, norm_size=2, query_bias="attention_bias", output_bias="attention_bias",
        ffn_bias=True, defaults={"attention_bias": True},
    ),
    "gptj": Family(gated=False, norm_size=2, norms=1, ffn_bias=True, head_bias=True),
    "llama": _LLAMA,
    "mistral": Family(),
    "mixtral": Family(defaults={"num_local_experts": 8, "num_experts_per_tok": 2}),
    "mpt": Family(gated=False, tied=True, defaults={"expansion_ratio": 4}),
    "olmo": Family(norm_size=0, query_bias="attention_bias", output_bias="attention_bias"),
    "olmo2": Family(
        query_norm="all", query_bias="attention_bias", output_bias="attention_bias",
    ),
    "opt": Family(
        gated=False, norm_size=2, tied=True, query_bias="enable_bias", output_bias="enable_bias",
        ffn_bias="enable_bias", positions=2, defaults={"enable_bias": True},
    ),
    "phi": Family(
        gated=False, norm_size=2, norms=1, query_bias=True, output_bias=True, ffn_bias=True,
        head_bias=True,
    ),
    "phi3": Family(),
    "qwen2": Family(query_bias=True),
    "qwen2_moe": Family(
        query_bias="qkv_bias",
        defaults={"qkv_bias": True, "num_experts": 60, "num_experts_per_tok": 4},
    ),
    "qwen3": Family(
        query_norm="head", query_bias="attention_bias", output_bias="attention_bias",
        defaults={"head_dim": 128},
    ),
    "qwen3_moe": Family(
        query_norm="head", query_bias="attention_bias", output_bias="attention_bias",
    ),
    "roberta": _BERT,
    "stablelm": Family(norm_size=2, query_bias="use_qkv_bias"),
    "starcoder2": Family(
        gated=False, norm_size=2, tied=True, query_bias="use_bias", output_bias="use_bias",
        ffn_bias="use_bias", defaults={"use_bias": True},
    ),
    "t5": Family(kind="encoder-decoder", tied=True, norms=3, defaults={"d_kv": 64}),
    "vit": _VIT,
    "xlm-roberta": _BERT,
}  # fmt: skip
