"""The memory traffic of adapters, counted by torch's own dispatch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from orchestration.planning.cost.coefficients import fitted
from orchestration.planning.cost.compute import layer_time
from orchestration.planning.cost.devices import device
from orchestration.planning.cost.prediction import predict
from orchestration.planning.cost.rates import rates
from orchestration.planning.cost.traffic import adapter_bytes
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import sizes
from orchestration.planning.model.shapes import Targets
from tests.planning.cost.laws import sweep
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


def lora(c: Configuration, rank: int, targets: Targets) -> Configuration:
    trained = c.model.lora_parameters(rank, targets)
    return replace(c, trainable=trained, adapter_targets=targets)


def test_adapters_of_experts_are_those_of_a_network_as_wide() -> None:
    """Every token passes all of two experts: as much as of a network of twice the width."""
    mixture = replace(LLAMA, experts=2, active_experts=2, ffn=LLAMA.ffn // 2)
    both, one, none = (
        adapter_bytes(c, sizes(c.model, 2048))
        for c in (
            lora(setting(mixture, precision="bf16_true"), 8, "all"),
            lora(setting(replace(mixture, active_experts=1), precision="bf16_true"), 8, "all"),
            lora(setting(mixture, precision="bf16_true"), 8, "attention"),
        )
    )
    for whole, half, least, (each_input, each_output) in zip(
        both, one, none, ((2, 12), (10, 8)), strict=True
    ):
        widths = 2 * mixture.hidden + mixture.ffn, 2 * mixture.ffn + mixture.hidden
        assert half - least == pytest.approx(each_input * widths[0] + each_output * widths[1])
        assert whole - half == pytest.approx(half - least)


MIXTURES = [c for c in sweep(150) if c.model.experts]


def test_adapters_on_experts_are_never_faster_than_none_there() -> None:
    for c in MIXTURES:
        every, some = (predict(lora(c, 16, targets)) for targets in ("all", "attention"))
        assert every.step_time_s > some.step_time_s


def test_a_higher_rank_is_never_faster() -> None:
    for c in MIXTURES:
        low, high = (predict(lora(c, rank, "all")) for rank in (8, 64))
        assert high.step_time_s > low.step_time_s


def test_a_token_passes_the_adapters_of_its_own_experts_alone() -> None:
    """They compute as much, however many experts there are to choose from."""
    mixture = replace(LLAMA, experts=8, active_experts=2, ffn=4096)
    few, many = (lora(setting(replace(mixture, experts=experts)), 16, "all") for experts in (8, 64))
    assert (many.trainable or 0) > 4 * (few.trainable or 0)
    assert products(many) == pytest.approx(products(few), rel=1e-3)


def products(c: Configuration) -> float:
    """Return the seconds of the products of a layer's adapters, forward."""
    k, s = fitted(), sizes(c.model, c.sequence)
    r = rates(c, device(c.machine.accelerator), k)
    every, least = (
        layer_time(each, s, r, k).matmul_forward for each in (c, replace(c, trainable=1))
    )
    return every - least
