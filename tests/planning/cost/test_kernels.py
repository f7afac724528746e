"""Kernels that some engines run in place of others, each by what it moves or computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestration.planning.cost import compute, traffic
from orchestration.planning.cost.coefficients import fitted
from orchestration.planning.cost.compute import attention_time, head_time, layer_time
from orchestration.planning.cost.devices import device
from orchestration.planning.cost.prediction import predict
from orchestration.planning.cost.rates import Rates, rates
from orchestration.planning.cost.traffic import adapter_bytes, elementwise_bytes, score_bytes
from orchestration.planning.model.configuration import (
    Activation,
    Configuration,
    Optimizer,
    Positions,
)
from orchestration.planning.model.layer_sizes import sizes
from tests.planning.settings import GPT, LLAMA, machine, setting


def reached(c: Configuration) -> Rates:
    return rates(c, device(c.machine.accelerator), fitted())


def test_recomputing_ends_before_the_last_product_of_a_layer() -> None:
    c = setting(recompute="full")
    early = replace(c, stops_early=True)
    z, r = sizes(LLAMA, 4096), reached(c)
    last, _ = compute.product_time(4096, LLAMA.ffn, LLAMA.hidden, r)
    saved = predict(c).time.recompute - predict(early).time.recompute
    assert saved == pytest.approx(c.micro_batches * LLAMA.layers * last * z.scale)
    others = replace(early, recompute="operators")
    assert predict(others).time == predict(replace(others, stops_early=False)).time


@pytest.mark.slow  # torch takes seconds to import
@pytest.mark.parametrize(("reentrant", "products"), [(False, 1), (True, 2)])
def test_pytorch_recomputes_no_product_whose_result_nothing_reads(
    reentrant: bool, products: int
) -> None:
    """Of a network with two matrices; the gradients of each take two products more."""
    torch: Any = pytest.importorskip("torch")
    flops: Any = pytest.importorskip("torch.utils.flop_counter")
    checkpoints: Any = pytest.importorskip("torch.utils.checkpoint")
    up, down = (torch.randn(8, 8, requires_grad=True) for _ in range(2))

    def network(x: Any) -> Any:
        return x + torch.nn.functional.silu(x @ up) @ down

    x = torch.randn(4, 8, requires_grad=True)
    result = checkpoints.checkpoint(network, x, use_reentrant=reentrant)
    counter = flops.FlopCounterMode(display=False)
    with counter:
        result.sum().backward()
    assert counter.get_total_flops() == (4 + products) * 2 * 4 * 8 * 8


def test_scores_cast_to_fp32_are_moved_beside_fused_kernels() -> None:
    c, z = setting(attention="unfused", kernels="fused"), sizes(LLAMA, 4096)
    assert score_bytes(c, z) == (4.0, 6.0)
    assert score_bytes(replace(c, softmax="cast"), z) == traffic._SOFTMAX["cast"]


def test_short_sequences_move_more_of_queries_keys_and_values_than_of_scores() -> None:
    """Beside each score of 64 tokens, four arrays of two bytes forward, and eight backward."""
    k = replace(fitted(), elementwise_eager=0.0, elementwise_fused=0.0)
    c = setting(GPT, attention="unfused", sequence=64, machine=machine(1), zero=0)
    z, r = sizes(GPT, 64), replace(reached(c), attention=1e30, vector=1e30)
    scores, columns = 64 * GPT.heads, 4 * GPT.hidden
    for seconds, each in zip(attention_time(c, z, 1, r, k), (1, 2), strict=True):
        assert seconds * r.memory == pytest.approx(each * (4 * scores + 2 * columns), rel=1e-6)


@pytest.mark.parametrize("activation", ["biased", "tanh"])
def test_an_activation_operator_by_operator_moves_more(activation: Activation) -> None:
    c, z = setting(GPT), sizes(GPT, 2048)
    other = replace(c, activation=activation)
    for back, usual in enumerate(elementwise_bytes(c, z)):
        kernel, operators = (traffic._ACTIVATION[each][back] for each in ("kernel", activation))
        assert elementwise_bytes(other, z)[back] - usual == (operators - kernel) * GPT.ffn
    compiled = replace(other, kernels="compiled")
    assert elementwise_bytes(compiled, z) == elementwise_bytes(replace(c, kernels="compiled"), z)
    gated = replace(setting(), activation=activation)
    assert elementwise_bytes(gated, sizes(LLAMA, 2048)) == elementwise_bytes(
        setting(), sizes(LLAMA, 2048)
    )


@pytest.mark.parametrize("positions", ["cast", "kernel"])
def test_a_kernel_for_rotary_positions_moves_less(positions: Positions) -> None:
    c, z = setting(), sizes(LLAMA, 4096)
    kernel = elementwise_bytes(replace(c, positions=positions), z)
    assert all(each < usual for each, usual in zip(kernel, elementwise_bytes(c, z), strict=True))


def test_norms_of_casts_move_more_than_one_kernel() -> None:
    c, z = setting(fused_norms=True), sizes(LLAMA, 4096)
    more = elementwise_bytes(replace(c, cast_norms=True), z)[0] - elementwise_bytes(c, z)[0]
    assert more == (16 - 6) * 2 * LLAMA.hidden


def test_words_that_are_no_multiple_of_8_slow_the_output_layer_unless_padded() -> None:
    k = fitted()
    for accelerator, slow in (("h100", (0.17, 0.27)), ("a100-80", (0.27, 0.42))):
        c = setting(GPT, machine=machine(1, accelerator), zero=0)
        even, odd = (
            head_time(c, sizes(replace(GPT, vocabulary=words), 2048), reached(c), k)
            for words in (50304, 50303)
        )
        assert even[1] / odd[1] == pytest.approx(slow[0], rel=1e-3)
        assert odd[0] > even[0]
        padded = replace(c, loss="parallel")
        words = sizes(replace(GPT, vocabulary=50303), 2048)
        assert head_time(padded, words, reached(c), k)[1] < even[1]


def test_an_optimizer_of_many_kernels_moves_more() -> None:
    c = setting(zero=0, machine=machine(1))
    times = [predict(replace(c, update_traffic=each)).time.optimizer for each in (1.0, 2.8)]
    assert times[1] == pytest.approx(2.8 * times[0])


def test_deepspeed_casts_adapters_beside_packed_weights_to_16_bits() -> None:
    c = setting(precision="bf16_true", trainable=10**7, frozen_bits=4.25)
    z = sizes(LLAMA, 4096)
    assert adapter_bytes(replace(c, deepspeed=True), z) == adapter_bytes(
        replace(c, frozen_bits=0.0), z
    )
    r = reached(c)
    slow, fast = (
        layer_time(replace(c, deepspeed=each), z, r, fitted()).elementwise_forward
        for each in (False, True)
    )
    assert fast < slow


@pytest.mark.parametrize("optimizer", ["adamw_8bit", "momentum", "sgd"])
def test_only_adamw_moves_more_without_a_fused_kernel(optimizer: Optimizer) -> None:
    def update_s(traffic: float, kind: Optimizer) -> float:
        c = replace(setting(), update_traffic=traffic, optimizer=kind)
        return predict(c).time.optimizer

    assert update_s(2.8, optimizer) == update_s(1.0, optimizer)
    assert update_s(2.8, "adamw") == pytest.approx(2.8 * update_s(1.0, "adamw"))
