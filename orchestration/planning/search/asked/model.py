"""The model in a request for a plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import field_validator, model_validator

from orchestration.planning.model.custom import custom
from orchestration.planning.model.shapes import ModelError, ModelShape
from orchestration.planning.model.typical_shapes import of_size, transformer
from orchestration.planning.search.asked.fields import Above, Asked, Positive

_POWERS: Final = {"K": 3, "M": 6, "B": 9, "T": 12}
_WITH_LETTER: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMBT])\s*", re.IGNORECASE)
"""A number of parameters as people write it: 7B."""


class ModelRequest(Asked):
    """The model: its configuration, a few numbers, or only its number of parameters."""

    name: str | None = None
    """Name of the model, for people."""
    config: Mapping[str, Any] | str | None = None
    """Content of Hugging Face's ``config.json``; in YAML files also the path to it."""
    parameters: Above | None = None
    """Number of parameters; the shape is guessed, and predictions get wider margins."""
    custom: bool = False
    """The model has no formula (images, speech, diffusion, one's own): it is planned by what
    `orchestrate probe` measures. `parameters` is required, and a sample needs no `sequence`."""
    layers: Positive | None = None
    """Transformer blocks."""
    hidden: Positive | None = None
    """Width of the residual stream."""
    heads: Positive | None = None
    """Attention heads."""
    kv_heads: Positive | None = None
    """Heads of keys and values; ``None``: as many as ``heads``."""
    ffn: Positive | None = None
    """Width of the feed-forward layers; ``None``: a usual one."""
    vocabulary: Positive | None = None
    """Number of tokens in the vocabulary."""
    gated: bool = True
    """The feed-forward layers are gated (SwiGLU): three matrices, not two."""
    tied_embeddings: bool = False
    """Input and output embeddings are one matrix."""

    @field_validator("config", mode="before")
    @classmethod
    def _content_or_path(cls, value: object) -> object:
        if value is not None and not isinstance(value, Mapping | str):
            raise ValueError(
                f"expected the content of a config.json, or the path to it, got {value!r}"
            )
        return value

    @field_validator("parameters", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        size = _WITH_LETTER.fullmatch(value) if isinstance(value, str) else None
        if size is not None:
            power = _POWERS[size[2].upper()]
            raise ValueError(f"expected a number, got {value!r}; write {size[1]}e{power}")
        return value

    @model_validator(mode="after")
    def _one_way(self) -> ModelRequest:
        sizes = {name: getattr(self, name) for name in ("layers", "hidden", "heads", "vocabulary")}
        numbers = [size for name, size in sizes.items() if size and name != "vocabulary"]
        ways = [self.config is not None, self.parameters is not None, any(numbers)]
        if self.custom:
            if sum(ways) != 1 or self.parameters is None:
                raise ValueError("custom: give parameters with it, and no other sizes")
        elif sum(ways) != 1:
            raise ValueError(
                "give one of config (Hugging Face's config.json), parameters, or layers with "
                f"hidden, heads and vocabulary{_by_name(self.name) if not any(ways) else ''}"
            )
        if not numbers:
            self._refuse_unread("custom" if self.custom else "config" if ways[0] else "parameters")
        missing = [name for name, size in sizes.items() if not size]
        if numbers and missing:
            be = "is" if len(missing) == 1 else "are"
            raise ValueError(
                "layers, hidden, heads and vocabulary are required together; "
                f"{' and '.join(missing)} {be} missing"
            )
        if not isinstance(self.config, str):
            self.shape()
        return self

    def _refuse_unread(self, way: str) -> None:
        """Refuse sizes that mean nothing beside what the shape is taken from."""
        unread = [
            name
            for name in ("kv_heads", "ffn", "vocabulary", "gated", "tied_embeddings")
            if name in self.model_fields_set and (way, name) != ("parameters", "vocabulary")
        ]
        if unread:
            raise ValueError(f"{way}: {' and '.join(unread)} would mean nothing beside it")

    def tokens(self) -> int | None:
        """Return the tokens of a sample, if the model tells them: those of an image, or none."""
        from orchestration.planning.model.images import tokens

        if self.custom:
            return 1
        return tokens(self.config) if isinstance(self.config, Mapping) else None

    def shape(self) -> ModelShape:
        """Return the model's shape."""
        # Imported on use: every pipeline loads this module, and few ask for a plan.
        from orchestration.planning.model.hugging_face import from_config

        if isinstance(self.config, str):
            raise ModelError(
                f"model.config: expected the content of a file, got a path: {self.config}"
            )
        if self.config is not None:
            return from_config(self.config, self.name)
        if self.custom:
            return custom(self.parameters or 0, self.name)
        if self.parameters is not None:
            billions = float(f"{self.parameters / 1e9:.3g}")
            name = self.name or f"a model of {billions:,.10g} billion parameters"
            return of_size(self.parameters, vocabulary=self.vocabulary or 32_000, name=name)
        return transformer(
            layers=self.layers or 0,
            hidden=self.hidden or 0,
            heads=self.heads or 0,
            kv_heads=self.kv_heads,
            ffn=self.ffn,
            vocabulary=self.vocabulary or 0,
            gated=self.gated,
            tied_embeddings=self.tied_embeddings,
            name=self.name or "model",
        )


_SIZE: Final = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)\s?([bm])(?![a-z])", re.IGNORECASE)
"""The size in a name: `8B` of Llama-3-8B."""


def _by_name(name: str | None) -> str:
    """Return the number of parameters that a name tells, as a hint.

    >>> _by_name("Llama-3-8B"), _by_name("pythia-410m"), _by_name("mixtral-8x7b"), _by_name("t5")
    ('; by its name, parameters: 8.0e9', '; by its name, parameters: 4.1e8', '', '')
    """
    size = _SIZE.search(name or "")
    if size is None or "x" in (name or "")[: size.start()][-1:]:
        return ""
    number = float(size[1]) * (1e9 if size[2] in "bB" else 1e6)
    digits, _, power = f"{number:.1e}".partition("e")
    return f"; by its name, parameters: {digits}e{int(power)}"
