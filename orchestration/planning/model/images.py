"""Vision transformers: an image is a sequence of patches, after tokens of the model's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from orchestration.planning.model.config_json import ConfigReader
from orchestration.planning.model.families import IMAGES
from orchestration.planning.model.shapes import ModelShape

_OWN_TOKENS: Final[Mapping[str, int]] = {"vit": 1, "deit": 2}
"""Learned tokens before the patches, by family: the class, and DeiT's distillation."""


def tokens(config: Mapping[str, object]) -> int | None:
    """Return the tokens of one image; ``None``: the model does not take images as patches.

    >>> tokens({"model_type": "vit", "image_size": 224, "patch_size": 14})
    257
    """
    own = _OWN_TOKENS.get(str(config.get("model_type", "")))
    if own is None:
        return None
    sizes = [config.get(name) or IMAGES[name] for name in ("image_size", "patch_size")]
    if not all(isinstance(size, int) for size in sizes):
        return None
    image, patch = (int(str(size)) for size in sizes)
    return (image // patch) ** 2 + own


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
    hidden, patch = shape.hidden, reader.number("patch_size")
    projection = reader.number("num_channels") * patch * patch * hidden
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
