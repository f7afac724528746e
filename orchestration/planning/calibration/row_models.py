"""Models of rows of measurements, with the usual sizes where a row leaves some out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from orchestration.planning.calibration.cells import integer, number
from orchestration.planning.calibration.published_models import find, published
from orchestration.planning.calibration.spellings import flag
from orchestration.planning.model.configuration import ConfigurationError
from orchestration.planning.model.shapes import Kind, ModelShape
from orchestration.planning.model.typical_shapes import of_size, transformer

_ENCODERS = ("bert", "roberta", "deberta", "electra")
_BOTH = ("t5", "bart", "encoder-decoder", "encdec")
_LLAMAS = ("llama", "mistral", "mixtral", "qwen", "moe")

_WORDS = {True: 32_000, False: 50_304}
"""Vocabularies of Llama 2, and of GPT-2 rounded up to a multiple of 64."""

_WIDE = 2048
"""Hidden size from which heads are 128 wide, else 64."""

_LORA_RANK = 8

_FEW_EXPERTS = 16
"""Up to which two experts are taken for a token, as Mixtral does, else eight, as Qwen3 does."""


def model(row: Mapping[str, str]) -> ModelShape:
    """The model of a row.

    Where sizes are left out, it is a published one of that name, else one of that number of
    parameters. Heads are 64 or 128 wide, feed-forward networks 4 times as wide as the model, or 8/3
    where they are gated, and vocabularies are those of GPT-2 or Llama 2.

    Raises:
        ConfigurationError: there is nothing to guess from.
    """
    mixture = row["arch"].lower() == "moe" or _named_experts(row["model"]) is not None
    if not (row["hidden"] and row["n_layers"]):
        if find(row["model"]) is None and row["params_b"] and not mixture:
            return of_size(number(row, "params_b") * 1e9, name=row["model"] or "model")
        return published(row["model"])
    known = find(row["model"])
    if mixture and known is not None and known.experts and known.hidden == integer(row, "hidden"):
        return known
    dense = _dense(row)
    return _with_experts(row, dense) if mixture else dense


def _dense(row: Mapping[str, str]) -> ModelShape:
    arch = row["arch"].lower()
    said = flag(row["gated_mlp"])
    gated = said if said is not None else arch.startswith(_LLAMAS)
    llama = arch.startswith(_LLAMAS) or gated
    hidden = integer(row, "hidden")
    heads = integer(row, "n_heads", max(1, hidden // (128 if hidden >= _WIDE else 64)))
    usual = transformer(layers=1, hidden=hidden, heads=1, vocabulary=256, gated=gated).ffn
    kind: Kind = "decoder"
    if arch.startswith(_ENCODERS):
        kind = "encoder"
    elif arch.startswith(_BOTH):
        kind = "encoder-decoder"
    return _shape(
        kind,
        integer(row, "n_layers"),
        hidden,
        heads,
        integer(row, "n_kv_heads", heads),
        integer(row, "ffn_hidden", usual),
        gated,
        integer(row, "vocab", _WORDS[llama]),
        flag(row["tied_embeddings"]) is True,
        llama,
        0 if llama else integer(row, "seq_len"),
    )


@lru_cache(maxsize=512)
def _shape(
    kind: Kind, layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, gated: bool,
    vocabulary: int, tied: bool, rotary: bool, positions: int,
) -> ModelShape:  # fmt: skip
    return ModelShape(
        kind=kind,
        layers=layers,
        encoder_layers=layers if kind == "encoder-decoder" else 0,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        ffn=ffn,
        gated=gated,
        vocabulary=vocabulary,
        tied_embeddings=tied,
        rotary=rotary,
        positions=positions,
    )


def _named_experts(name: str) -> int | None:
    """The experts that a model's name tells of: 8 in ``mixtral-8x7b``."""
    found = re.search(r"(?<![a-z0-9])(\d+)x\d+(?:\.\d+)?b", name.lower())
    return int(found[1]) if found else None


def _with_experts(row: Mapping[str, str], dense: ModelShape) -> ModelShape:
    """The model with as many experts as its name tells, or as its parameters leave room for."""
    experts = _named_experts(row["model"])
    if experts is None and row["params_b"]:
        one = dense.layers * dense.hidden * dense.ffn * (3 if dense.gated else 2)
        experts = 1 + round((number(row, "params_b") * 1e9 - dense.parameters) / one)
    if experts is None or experts <= 1:
        raise ConfigurationError(
            f"{row['model']!r} is a mixture of experts, and neither its name (8x7b) nor params_b "
            "tells how many"
        )
    return replace(dense, experts=experts, active_experts=2 if experts <= _FEW_EXPERTS else 8)


def trainable(row: Mapping[str, str], shape: ModelShape) -> int | None:
    """Parameters of an adapter, where a row trains one; ``None``: all are trained.

    Of adapters that no number of parameters is given of, those of attention; rank 8 if need be.
    """
    told = row["optimizer"].lower()
    named = f"{told} {row['framework']} {row['model']}".lower()
    if row["arch"].lower() != "lora" and not re.search(r"\bq?lora\b", named):
        return None
    if found := re.search(r"([\d,]+) *(?:trainable|param)", told):
        return int(found[1].replace(",", ""))
    rank = re.search(r"(?:\br|rank) *[= ] *(\d+)", told)
    return shape.lora_parameters(int(rank[1]) if rank else _LORA_RANK)
