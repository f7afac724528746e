"""Models of rows of measurements, with typical sizes where cells are empty."""

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

_ENCODERS = ("bert", "roberta", "deberta", "electra", "vit")
_BOTH = ("t5", "bart", "encoder-decoder", "encdec")
_LLAMAS = ("llama", "mistral", "mixtral", "qwen", "moe")

_WORDS = {True: 32_000, False: 50_304}
"""Vocabularies of Llama 2, and of GPT-2 rounded up to a multiple of 64."""

_WIDE = 2048
"""Hidden size from which heads are 128 wide; below they are 64 wide."""

_LORA_RANK = 8

_FEW_EXPERTS = 16
"""Up to this many experts, a token passes two, as in Mixtral; otherwise eight, as in Qwen3."""


def model(row: Mapping[str, str]) -> ModelShape:
    """Return the model of a row.

    Without sizes, it is a published model of that name, or a guess from its number of parameters.
    Missing sizes get typical values: heads 64 or 128 wide, a feed-forward network 4 times as wide
    as the model (8/3 if gated), and the vocabulary of GPT-2 or Llama 2.

    Raises:
        ConfigurationError: the row has too little to guess from.
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
    cell = flag(row["gated_mlp"])
    gated = cell if cell is not None else arch.startswith(_LLAMAS)
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
        arch != "vit",
    )


@lru_cache(maxsize=512)
def _shape(
    kind: Kind, layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, gated: bool,
    vocabulary: int, tied: bool, rotary: bool, positions: int, has_head: bool,
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
        has_head=has_head,
    )


def _named_experts(name: str) -> int | None:
    """Return the number of experts in a model's name: 8 in ``mixtral-8x7b``."""
    match = re.search(r"(?<![a-z0-9])(\d+)x\d+(?:\.\d+)?b", name.lower())
    return int(match[1]) if match else None


def _with_experts(row: Mapping[str, str], dense: ModelShape) -> ModelShape:
    """Add the experts that the model's name states, or that its number of parameters implies."""
    experts = _named_experts(row["model"])
    if experts is None and row["params_b"]:
        per_expert = dense.layers * dense.hidden * dense.ffn * (3 if dense.gated else 2)
        experts = 1 + round((number(row, "params_b") * 1e9 - dense.parameters) / per_expert)
    if experts is None or experts <= 1:
        raise ConfigurationError(
            f"{row['model']!r} is a mixture of experts, but neither its name (like 8x7b) nor "
            "params_b says of how many"
        )
    return replace(dense, experts=experts, active_experts=2 if experts <= _FEW_EXPERTS else 8)


def trainable(row: Mapping[str, str], shape: ModelShape) -> int | None:
    """Return the number of parameters in a row's adapter; ``None``: all parameters are trained.

    An adapter without a number of parameters is on attention, with rank 8 unless the row says so.
    """
    optimizer = row["optimizer"].lower()
    names = f"{optimizer} {row['framework']} {row['model']}".lower()
    if row["arch"].lower() != "lora" and not re.search(r"\bq?lora\b", names):
        return None
    if count := re.search(r"([\d,]+) *(?:trainable|param)", optimizer):
        return int(count[1].replace(",", ""))
    rank = re.search(r"(?:\br|rank) *[= ] *(\d+)", optimizer)
    return shape.lora_parameters(int(rank[1]) if rank else _LORA_RANK)
