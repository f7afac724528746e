"""Kinds of models whose time and memory no formula here predicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "images": ("image_size", "patch_size", "num_channels", "depths", "embedding_size"),
    "speech": ("num_mel_bins", "conv_kernel", "feat_extract_norm"),
    "diffusion": ("_class_name", "_diffusers_version", "cross_attention_dim", "sample_size"),
    "state-space or recurrent layers": (
        "state_size", "ssm_state_size", "ssm_cfg", "mamba_d_state", "mamba_num_heads",
        "hybrid_override_pattern", "layers_block_type", "attention_hidden_size",
    ),
}  # fmt: skip
"""Keys that only configurations of such models have."""

_KINDS: Final[Mapping[str, str]] = {
    "resnet": "images", "beit": "images", "swin": "images", "convnext": "images",
    "whisper": "speech", "wav2vec2": "speech", "mamba": "state-space or recurrent layers",
    "rwkv": "state-space or recurrent layers",
}  # fmt: skip


def without_formula(config: Mapping[str, object], kind: str) -> str | None:
    """Return what a model works on that has no formula; ``None``: it may have one.

    >>> without_formula({"num_channels": 3, "depths": [3, 4, 6, 3]}, "resnet")
    'images'
    """
    if kind in _KINDS:
        return _KINDS[kind]
    return next((what for what, keys in _KEYS.items() if any(key in config for key in keys)), None)
