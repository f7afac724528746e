"""Shapes of published mixtures of experts, for tables that name them without sizes.

The sizes are those published with the models, in their ``config.json``. Their parameters add up,
within 6 %, to the 671, 1000, 30.5, 20.9, 117, 30, 46.7, 141 and 235 billion that the authors state.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from orchestration.errors import near
from orchestration.planning.calibration.spellings import plain
from orchestration.planning.model.configuration import ConfigurationError
from orchestration.planning.model.shapes import LatentAttention, ModelShape

_LATENT = LatentAttention(query_rank=1536, key_value_rank=512, rotary_width=64)

_SHAPES: Mapping[str, ModelShape] = MappingProxyType({
    "DeepSeekV3": ModelShape(
        name="DeepSeekV3", layers=61, hidden=7168, heads=128, kv_heads=128, head_width=192,
        value_width=128, latent=_LATENT, ffn=2048, gated=True, experts=256, active_experts=9,
        shared_experts=1, dense_layers=3, dense_ffn=18432, vocabulary=129280,
    ),
    "Kimi_K2": ModelShape(
        name="Kimi_K2", layers=61, hidden=7168, heads=64, kv_heads=64, head_width=192,
        value_width=128, latent=_LATENT, ffn=2048, gated=True, experts=384, active_experts=9,
        shared_experts=1, dense_layers=1, dense_ffn=18432, vocabulary=163840,
    ),
    "Qwen3_30B_a3B": ModelShape(
        name="Qwen3_30B_a3B", layers=48, hidden=2048, heads=32, kv_heads=4, head_width=128,
        ffn=768, gated=True, experts=128, active_experts=8, vocabulary=151936,
    ),
    "gpt-oss-20b": ModelShape(
        name="gpt-oss-20b", layers=24, hidden=2880, heads=64, kv_heads=8, head_width=64,
        window=128, windowed_layers=12, ffn=2880, gated=True, experts=32, active_experts=4,
        vocabulary=201088,
    ),
    "gpt-oss-120b": ModelShape(
        name="gpt-oss-120b", layers=36, hidden=2880, heads=64, kv_heads=8, head_width=64,
        window=128, windowed_layers=18, ffn=2880, gated=True, experts=128, active_experts=4,
        vocabulary=201088,
    ),
    # A hybrid of 52 layers: 23 of experts, 6 of attention, 23 of Mamba 2, whose projections (38.7
    # million parameters) count as a feed-forward network in the 29 layers without experts.
    "Nemotron_3_Nano": ModelShape(
        name="Nemotron_3_Nano", layers=52, hidden=2688, heads=32, kv_heads=2, head_width=128,
        attention_layers=6, ffn=1856, gated=False, experts=128, active_experts=7,
        shared_experts=1, shared_ffn=3712, dense_layers=29, dense_ffn=5710, vocabulary=131072,
    ),
    "Mixtral_8x7B": ModelShape(
        name="Mixtral_8x7B", layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, gated=True,
        experts=8, active_experts=2, vocabulary=32000,
    ),
    "Mixtral_8x22B": ModelShape(
        name="Mixtral_8x22B", layers=56, hidden=6144, heads=48, kv_heads=8, ffn=16384, gated=True,
        experts=8, active_experts=2, vocabulary=32768,
    ),
    "Qwen3_235B_a22B": ModelShape(
        name="Qwen3_235B_a22B", layers=94, hidden=4096, heads=64, kv_heads=4, head_width=128,
        ffn=1536, gated=True, experts=128, active_experts=8, vocabulary=151936,
    ),
})  # fmt: skip


def find(name: str) -> ModelShape | None:
    """Return the shape of a model by its name, ignoring case and punctuation; ``None``: unknown."""
    return {plain(key): shape for key, shape in _SHAPES.items()}.get(plain(name))


def published(name: str) -> ModelShape:
    """Return the shape of a model by its name.

    Raises:
        ConfigurationError: the name is unknown.
    """
    shape = find(name)
    if shape is None:
        raise ConfigurationError(
            f"the row has no sizes, and model {name!r} is unknown{near(name, _SHAPES)}"
        )
    return shape
