"""Parameters and operations of a transformer."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.planning.model.hugging_face import from_config
from orchestration.planning.model.shapes import ModelError, ModelShape
from tests.planning.model.published_models import LLAMA_2_7B, LLAMA_3_8B, MIXTRAL_8X7B


def test_training_costs_six_operations_per_parameter_and_token() -> None:
    shape = from_config(LLAMA_2_7B)
    products = 6 * (shape.parameters - shape.vocabulary * shape.hidden)
    scores = 12 * shape.layers * shape.hidden * 4096
    assert shape.training_flops_per_token(4096) == pytest.approx(products + scores, rel=1e-4)


def test_causal_kernels_do_half_of_the_scores() -> None:
    shape = from_config(LLAMA_2_7B)
    whole = shape.attention_flops_per_token(4096)
    assert shape.attention_flops_per_token(4096, causal=True) == whole / 2


@pytest.mark.parametrize("sequence", [16, 4096, 100_000])
@pytest.mark.parametrize("causal", [True, False])
def test_a_window_never_adds_operations(sequence: int, causal: bool) -> None:
    plain = from_config(LLAMA_2_7B | {"model_type": "mistral"})
    windowed = from_config(LLAMA_2_7B | {"model_type": "mistral", "sliding_window": 4096})
    assert windowed.windowed_layers == 32
    seen = windowed.attention_flops_per_token(sequence, causal=causal)
    assert 0 < seen <= plain.attention_flops_per_token(sequence, causal=causal)


def test_a_token_meets_the_active_experts_only() -> None:
    shape = from_config(MIXTRAL_8X7B)
    assert shape.active_parameters == 12_879_925_248  # 12.9 B, arXiv 2401.04088
    assert shape.expert_parameters == 32 * 8 * 3 * 4096 * 14336


def test_a_model_without_experts_meets_all() -> None:
    shape = from_config(LLAMA_2_7B)
    assert shape.active_parameters == shape.parameters
    assert shape.expert_parameters == 0


@pytest.mark.parametrize("targets", ["attention", "all"])
def test_lora_parameters_are_two_matrices_per_projection(targets: Any) -> None:
    shape = from_config(LLAMA_3_8B)
    rank = 16
    sides = [(4096, 4096), (4096, 1024), (4096, 1024), (4096, 4096)]
    if targets == "all":
        sides += [(4096, 14336)] * 3
    expected = 32 * sum(rank * (inner + outer) for inner, outer in sides)
    assert shape.lora_parameters(rank, targets) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": 0}, "heads must be at least 1, got 0"),
        ({"heads": 32, "kv_heads": 12}, "32 heads can't share 12"),
        ({"heads": 33, "kv_heads": 33}, "not a multiple of 33"),
        ({"experts": 8, "active_experts": 9}, "9 active experts of 8"),
        ({"experts": 8, "active_experts": 2, "dense_layers": 3}, "dense_ffn"),
        ({"dense_layers": 99}, "99 dense layers of 32"),
    ],
)
def test_what_no_transformer_can_be(change: dict[str, int], message: str) -> None:
    numbers: dict[str, Any] = {
        "layers": 32,
        "hidden": 4096,
        "heads": 32,
        "kv_heads": 32,
        "ffn": 11008,
    } | change
    with pytest.raises(ModelError, match=message):
        ModelShape(**numbers, gated=True, vocabulary=32000)
