"""The memory traffic of adapters, counted by torch's own dispatch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from orchestration.planning.cost.compute import adapter_bytes
from orchestration.planning.cost.prediction import predict
from orchestration.planning.model.layer_sizes import sizes
from tests.planning.settings import LLAMA, setting

Count = Callable[..., tuple[float, float]]


@pytest.fixture(scope="module")
def count() -> Count:
    """Bytes that a matrix's adapter moves, forward and backward; only a test that runs loads it."""
    pytest.importorskip("torch")
    from tests.planning.cost import torch_adapters

    return torch_adapters.count


@pytest.mark.slow  # torch takes seconds to import
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dropout", [False, True])
def test_peft_moves_what_the_formula_says(packed: bool, dropout: bool, count: Count) -> None:
    """Of one input and output more, per token; a rank of 1 adds next to nothing of its own."""
    c = replace(
        setting(precision="bf16_true", trainable=10**6),
        frozen_bits=4.5 if packed else 0.0,
        adapter_dropout=dropout,
    )
    least = count(64, 64, wide=packed, dropout=dropout)
    wider, taller = (
        count(*widths, wide=packed, dropout=dropout) for widths in ((128, 64), (64, 128))
    )
    s = sizes(LLAMA, c.sequence)
    inputs = 5 * s.hidden + s.output + s.ffn
    outputs = 2 * s.hidden + s.query + s.keys_and_values + 2 * s.ffn
    for said, small, wide, tall in zip(adapter_bytes(c, s), least, wider, taller, strict=True):
        moved = (wide - small) / 64 * inputs + (tall - small) / 64 * outputs
        assert said == pytest.approx(moved, rel=2e-3)


def test_whole_training_has_no_adapters() -> None:
    assert adapter_bytes(setting(), sizes(LLAMA, 2048)) == (0.0, 0.0)


def test_adapters_of_attention_alone_leave_the_feed_forward_network() -> None:
    c = setting(precision="bf16_true", trainable=10**6)
    s = sizes(LLAMA, 2048)
    every = adapter_bytes(c, s)
    some = adapter_bytes(replace(c, adapter_targets="attention"), s)
    for whole, part, (each_input, each_output) in zip(every, some, ((2, 12), (10, 8)), strict=True):
        network = each_input * (2 * s.hidden + s.ffn) + each_output * (2 * s.ffn + s.hidden)
        assert whole - part == pytest.approx(network)


def test_adapters_take_time_of_their_own() -> None:
    """More, the wider they are; and where they drop a part of their input."""
    adapter = setting(zero=0, precision="bf16_true", trainable=10**7)
    base, wide, dropping = (
        predict(c).step_time_s
        for c in (
            adapter,
            replace(adapter, trainable=10**9),
            replace(adapter, adapter_dropout=True),
        )
    )
    assert base < dropping < 1.1 * base
    assert base < wide < 1.5 * base
