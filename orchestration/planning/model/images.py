"""Vision transformers: an image is a sequence of patches, after tokens of the model's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from orchestration.planning.model.config_json import ConfigReader
from orchestration.planning.model.families import IMAGES
from orchestration.planning.model.shapes import ModelError, ModelShape

_OWN_TOKENS: Final[Mapping[str, int]] = {"vit": 1, "deit": 2}
"""Learned tokens before the patches, by family: the class, and DeiT's distillation."""


def tokens(config: Mapping[str, object]) -> int | None:
    """Return the tokens of one image; ``None``: the model does not take images as patches.

    >>> tokens({"model_type": "vit", "image_size": 224, "patch_size": 14})
    257
    >>> tokens({"model_type": "vit", "image_size": [224, 112], "patch_size": 14})
    129
    """
    own = _OWN_TOKENS.get(str(config.get("model_type", "")))
    if own is None:
        return None
    image, patch = (_sides(config, name) for name in ("image_size", "patch_size"))
    return (image[0] // patch[0]) * (image[1] // patch[1]) + own


def _sides(config: Mapping[str, object], name: str) -> tuple[int, int]:
    """Return height and width; configurations write one number for both, or a pair."""
    value = config.get(name) or IMAGES[name]
    match [value, value] if isinstance(value, int) else value:
        case [int(height), int(width)] if height > 0 and width > 0:
            return height, width
    raise ModelError(f"{name}: expected a number or a pair of them, got {value!r}")


def as_text(config: Mapping[str, object], kind: str) -> dict[str, object]:
    """Return what makes a text encoder's configuration of one for images.

    The model's own tokens are its vocabulary; their embeddings have as many parameters.
    """
    if kind not in _OWN_TOKENS:
        return {}
    return {
        "vocab_size": _OWN_TOKENS[kind],
        "max_position_embeddings": tokens({**config, "model_type": kind}),
    }


def with_patches(reader: ConfigReader, shape: ModelShape) -> ModelShape:
    """Add the projection of patches, and the pooler or the classifier."""
    hidden, (height, width) = shape.hidden, _sides(reader.config, "patch_size")
    projection = reader.number("num_channels") * height * width * hidden
    other = shape.other_parameters + hidden
    if reader.architecture.endswith("Model"):
        other += hidden * (hidden + 1)
    else:
        other += labels(reader) * (hidden + 1)
    return replace(shape, has_head=False, head_projection=projection, other_parameters=other)


def labels(reader: ConfigReader) -> int:
    """Return the number of classes that a classifier tells apart."""
    named = reader.config.get("id2label")
    return len(named) if isinstance(named, Mapping) else 2
