"""The activations that torch keeps for the backward pass, counted by its own hooks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from orchestration.planning.cost.activations import kept_bytes, layer_bytes
from orchestration.planning.model.layer_sizes import sizes
from orchestration.planning.model.shapes import ModelShape
from tests.planning.settings import setting

pytestmark = pytest.mark.slow  # torch takes seconds to import
WIDTH, HEADS, TOKENS = 128, 4, 64
Count = Callable[..., float]


@pytest.fixture
def count() -> Count:
    """Bytes per token and layer that torch saves; only a test that runs loads it."""
    pytest.importorskip("torch")
    from tests.planning.cost import torch_layers

    assert (torch_layers.WIDTH, torch_layers.HEADS, torch_layers.TOKENS) == (WIDTH, HEADS, TOKENS)
    return torch_layers.count


def small(gated: bool) -> ModelShape:
    return ModelShape(
        layers=1, hidden=WIDTH, heads=HEADS, kv_heads=HEADS, ffn=4 * WIDTH, gated=gated,
        vocabulary=1000, rotary=gated,
    )  # fmt: skip


@pytest.mark.parametrize("gated", [False, True], ids=["gpt", "llama"])
def test_torch_keeps_what_the_formula_says(gated: bool, count: Count) -> None:
    model = small(gated)
    c = setting(model, sequence=TOKENS, attention="flash2", kernels="eager")
    assert count(gated, layers=4) == pytest.approx(layer_bytes(c, sizes(model, TOKENS)), rel=0.06)


def test_torch_keeps_the_inputs_of_recomputed_layers(count: Count) -> None:
    c = setting(small(False), sequence=TOKENS, recompute="full")
    kept = kept_bytes(c, sizes(c.model, TOKENS))
    assert count(False, layers=4, recompute=True) == pytest.approx(kept, rel=0.06)
