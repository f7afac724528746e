"""Step times: properties of every part, whatever the coefficients."""

from __future__ import annotations

import time
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.planning.cost.coefficients import coefficients, facts, fitted
from orchestration.planning.cost.devices import device, devices
from orchestration.planning.cost.prediction import predict
from orchestration.planning.model.configuration import ConfigurationError
from orchestration.planning.model.recipes import recipe
from tests.planning.settings import GPT, LLAMA, machine, setting


def test_step_is_the_sum_of_its_parts() -> None:
    time_s = predict(setting(tensor=2, zero=1, machine=machine(16))).time
    assert time_s.total == pytest.approx(sum(getattr(time_s, f.name) for f in fields(time_s)))
    assert min(getattr(time_s, f.name) for f in fields(time_s)) >= 0


def test_same_configuration_gives_the_same_prediction() -> None:
    assert predict(setting()) == predict(setting())


def test_interval_holds_the_prediction() -> None:
    prediction = predict(setting())
    assert prediction.low_s < prediction.step_time_s < prediction.high_s
    assert prediction.memory_low_gib < prediction.memory_gib < prediction.memory_high_gib


def test_guessed_models_have_wider_intervals() -> None:
    known, guessed = setting(), setting(replace(LLAMA, approximate=True))
    assert predict(guessed).high_s > predict(known).high_s


def test_pipeline_waits_as_the_formula_says() -> None:
    """(p - 1) / m of the work of one stage, https://arxiv.org/abs/2104.04473, section 2.2."""
    values = {name: fact.value for name, fact in facts().items()} | {"head_exposure": 0.0}
    model = replace(LLAMA, has_head=False)
    c = setting(model, zero=0, pipeline=8, interleave=1, global_batch=256)
    k = coefficients(values | {"interconnect_share": 1e9, "interconnect_latency_us": 0.0})
    step = predict(c, k).time
    work = step.total - step.pipeline - step.optimizer - k.step_overhead_ms * 1e-3
    assert step.pipeline / work == pytest.approx(7 / 256, rel=1e-3)
    halved = predict(replace(c, interleave=2), k).time.pipeline
    assert halved == pytest.approx(step.pipeline / 2, rel=1e-3)


def test_recomputing_everything_costs_a_forward_pass() -> None:
    step = predict(setting(recompute="full")).time
    assert step.recompute == pytest.approx(step.forward)
    assert predict(setting(recompute="full", recompute_share=0.5)).time.recompute == pytest.approx(
        step.forward / 2
    )


def test_tensor_parallelism_beyond_a_node_is_slow() -> None:
    inside = predict(setting(tensor=8, zero=1, machine=machine(16)))
    across = predict(setting(tensor=16, zero=1, machine=machine(16)))
    assert across.time.tensor > 3 * inside.time.tensor


def test_sharding_inside_a_node_spares_the_network() -> None:
    slow = machine(64, network_gbps=25.0)
    whole = predict(setting(machine=slow, global_batch=512))
    hybrid = predict(setting(machine=slow, global_batch=512, shard=8))
    assert hybrid.time.data < whole.time.data


def test_frozen_matrices_have_no_gradients() -> None:
    full, adapter = setting(zero=0), setting(zero=0, trainable=4_194_304)
    assert predict(adapter).time.backward < 0.75 * predict(full).time.backward


def test_eight_bits_are_faster_where_the_device_has_them() -> None:
    def seconds(accelerator: str, precision: str) -> float:
        c = setting(machine=machine(accelerator=accelerator), precision=precision, kernels="fused")
        return predict(c).step_time_s

    assert seconds("h100", "fp8") < 0.8 * seconds("h100", "bf16")
    assert seconds("a100-80", "fp8") >= seconds("a100-80", "bf16")


@given(
    devices=st.sampled_from([8, 16, 64, 256]),
    micro_batch=st.sampled_from([1, 2, 4]),
    sequence=st.sampled_from([512, 2048, 8192]),
    zero=st.sampled_from([0, 1, 2, 3]),
)
def test_more_tokens_take_longer(devices: int, micro_batch: int, sequence: int, zero: int) -> None:
    c = setting(
        GPT, machine=machine(devices), micro_batch=micro_batch, sequence=sequence, zero=zero,
        global_batch=4 * devices * micro_batch,
    )  # fmt: skip
    more = replace(c, global_batch=2 * c.global_batch)
    assert predict(c).step_time_s < predict(more).step_time_s
    assert predict(more).tokens_per_s > 0.99 * predict(c).tokens_per_s


def test_unknown_accelerator_is_an_error_that_says_so() -> None:
    with pytest.raises(
        ConfigurationError, match=r"rates of accelerator 'h10' are unknown, .* did you mean 'h100'"
    ):
        predict(setting(machine=machine(accelerator="h10")))


def test_contradictions_are_reported_together() -> None:
    with pytest.raises(ConfigurationError) as error:
        setting(machine=machine(16, network_gbps=None), tensor=3, micro_batch=0, precision="fp12")
    for word in (
        "3, which does not divide",
        "micro_batch must be at least 1, got 0",
        "network_gbps",
        "fp12",
    ):
        assert word in str(error.value)


def test_every_device_has_rates() -> None:
    for key in devices():
        rates = device(key)
        assert 0 < rates.matmul_tflops <= rates.peak_tflops
        assert rates.interconnect_gb_per_s > 0


def test_coefficients_keep_to_their_bounds() -> None:
    for fact in facts().values():
        assert fact.low <= fact.value <= fact.high, fact.name
        assert fact.low <= fact.prior <= fact.high, fact.name
        assert fact.unit, fact.name
        assert len(fact.meaning) > 20, fact.name
    assert {f.name for f in fields(fitted())} == set(facts())


def test_frameworks_are_known_by_the_start_of_their_name() -> None:
    assert recipe("Megatron-DeepSpeed").deepspeed
    assert recipe("Megatron-LM", 2021).dropout
    assert recipe("Megatron-LM", 2024) is recipe("Megatron-Core")
    assert recipe("something else").kernels == "eager"


def test_predictions_are_fast_enough_to_search_with() -> None:
    settings = [setting(micro_batch=b, global_batch=8 * b) for b in range(1, 101)]
    for c in settings[:10]:
        predict(c)
    start = time.process_time()
    for c in settings:
        predict(c)
    each = (time.process_time() - start) / len(settings)
    assert each < 500e-6, "typically 25 microseconds"


def test_experts_are_reduced_only_among_the_ranks_that_hold_the_same() -> None:
    """With as many expert-parallel ranks as replicas, every expert has its only copy."""
    mixture = replace(LLAMA, experts=64, active_experts=2)
    usual = setting(mixture, zero=3, machine=machine(8), overlap_data=False)
    spread = replace(usual, expert=8)
    dense = predict(replace(usual, model=LLAMA)).time.data
    assert predict(spread).time.data < dense < predict(usual).time.data / 8
