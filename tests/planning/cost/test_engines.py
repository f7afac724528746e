"""Costs that differ between training engines, each by what its source does."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from orchestration.planning.cost.coefficients import fitted
from orchestration.planning.cost.collectives import broadcast_latency, cluster_links, gather
from orchestration.planning.cost.compute import (
    attention_time,
    launch_times,
    layer_time,
    product_time,
)
from orchestration.planning.cost.data_parallel import host_rate, updated_bytes
from orchestration.planning.cost.devices import device
from orchestration.planning.cost.model_parallel import expert_time, wait_time
from orchestration.planning.cost.prediction import predict
from orchestration.planning.cost.rates import rates
from orchestration.planning.cost.traffic import (
    cast_bytes,
    elementwise_bytes,
    padding,
    score_bytes,
)
from orchestration.planning.model.configuration import Configuration, Precision, Softmax
from orchestration.planning.model.layer_sizes import sizes
from orchestration.planning.model.recipes import engine_settings, recipe
from tests.planning.settings import LLAMA, machine, setting

ALEPH = engine_settings(recipe("aa-scaling"), zero=1, precision="bf16")


def memory_rate(c: Configuration) -> float:
    return rates(c, device(c.machine.accelerator), fitted()).memory


def test_gradients_of_every_micro_batch_but_the_first_are_added() -> None:
    c = setting(zero=0, machine=machine(1), global_batch=4, micro_batch=1)
    one, four = (predict(replace(c, global_batch=n)).time.backward for n in (1, 4))
    added = 3 * 3 * 2 * LLAMA.parameters / memory_rate(c)
    assert four - 4 * one == pytest.approx(added, rel=1e-6)


def test_kernels_of_megatron_add_to_a_sum_while_they_multiply() -> None:
    c = setting(zero=0, kernels="fused", global_batch=64, micro_batch=1)
    assert predict(c).time.backward < predict(replace(c, deepspeed=True)).time.backward


@pytest.mark.parametrize(("zero", "times"), [(1, 1), (2, 8)])
def test_zero_2_of_deepspeed_reduces_every_micro_batch(zero: int, times: int) -> None:
    c = setting(zero=zero, overlap_data=False, whole_reduction=True, deepspeed=True)
    links = cluster_links(c, device("a100-80"), fitted())
    reduced = 2 * gather(2 * LLAMA.parameters, 8, 8, links)
    more = predict(c).time.data - predict(replace(c, global_batch=8)).time.data
    assert more == pytest.approx((times - 1) * reduced, rel=1e-6)


@pytest.mark.parametrize(("devices", "owners"), [(64, 64), (1024, 9 * LLAMA.layers)])
def test_each_rank_that_has_weights_broadcasts_them_after_the_others(
    devices: int, owners: int
) -> None:
    """No more ranks than there are tensors have some; a chain passes all devices."""
    c = setting(machine=machine(devices), zero=1, global_batch=devices)
    links = cluster_links(c, device("a100-80"), fitted())
    silent = replace(c, overlap_data=False)
    more = predict(replace(silent, broadcast_weights=True)).time.data - predict(silent).time.data
    assert more == pytest.approx(owners * broadcast_latency(devices, 8, links))
    assert broadcast_latency(devices, 8, links) > links.hop * (devices / 8 - 1)
    inside = replace(c, broadcast_weights=True, shard=8)
    assert predict(inside).time.data < predict(replace(inside, shard=None)).time.data


def test_a_micro_batch_on_trainium_is_one_program_whose_collectives_nothing_hides() -> None:
    """Only the step's own overhead is left beside computing."""
    cores = machine(32, "trn1", devices_per_node=32, device_memory_gib=16.0)
    engine = engine_settings(recipe("neuronx-distributed"), zero=1, precision="bf16")
    c = setting(machine=cores, zero=1, tensor=8, global_batch=64, kernels="fused", **engine)
    time = predict(c).time
    assert time.other == pytest.approx(fitted().step_overhead_ms * 1e-3)
    hidden = predict(replace(c, overlap_data=True, overlap_tensor=True)).time
    assert time.tensor == pytest.approx(hidden.tensor / fitted().tensor_exposed)
    assert time.data > hidden.data


def test_few_tokens_take_the_time_of_launching_their_kernels() -> None:
    c = setting(machine=machine(1), zero=0, sequence=64, global_batch=1)
    times = launch_times(c, sizes(LLAMA, 64), fitted())
    whole = LLAMA.layers * sum(times)
    step = predict(c).time
    assert step.forward + step.backward + step.other > whole > 2 * step.forward
    long = replace(c, sequence=8192)
    assert predict(long).time.other == pytest.approx(predict(replace(c, sequence=4096)).time.other)


def test_adapters_and_recomputation_launch_more() -> None:
    z, c = sizes(LLAMA, 4096), setting()
    usual, full, adapter = (
        sum(launch_times(each, z, fitted()))
        for each in (c, replace(c, recompute="full"), replace(c, trainable=10**7))
    )
    assert usual < full < adapter


def test_zero_3_of_deepspeed_runs_hooks_around_each_module() -> None:
    z, c = sizes(LLAMA, 4096), setting(recompute="full")
    adapter = replace(c, trainable=10**7)
    hooks, more = (
        sum(launch_times(replace(each, deepspeed=True), z, fitted()))
        - sum(launch_times(each, z, fitted()))
        for each in (c, adapter)
    )
    passes = 3 * 11 * fitted().launch_us * 1e-6
    assert hooks == pytest.approx(13 * passes)
    assert more == pytest.approx((13 + 5 * 4) * passes)


def test_unpacking_operator_by_operator_is_slower_in_each_forward_pass() -> None:
    packed = setting(
        machine=machine(1), zero=0, frozen_bits=4.25, trainable=10**7, global_batch=1,
        precision="bf16_true",
    )  # fmt: skip
    separate = replace(packed, separate_unpacking=True)
    one, other = predict(packed).time, predict(separate).time
    assert other.forward > one.forward
    assert other.backward < one.backward


def test_aleph_alphas_engine_reduces_whole_gradients_in_fp32_when_all_are_there() -> None:
    c = setting(zero=1, **ALEPH)
    links = cluster_links(c, device("a100-80"), fitted())
    parameters = LLAMA.parameters
    least = 2 * gather(4 * parameters, 8, 8, links) + gather(2 * parameters, 8, 8, links)
    assert predict(c).time.data == pytest.approx(least, rel=0.05)


def test_aleph_alphas_engine_keeps_the_logits_of_two_micro_batches() -> None:
    c = setting(zero=1, micro_batch=4, recompute="full", **ALEPH)
    kept = predict(c).memory.working - predict(replace(c, kept_logits=False)).memory.working
    assert kept == pytest.approx(2 * 4 * c.sequence * LLAMA.vocabulary / 2**30)
    assert predict(replace(c, global_batch=32)).memory.working < predict(c).memory.working


@pytest.mark.parametrize(
    ("softmax", "more"),
    [("fused", (0, 0)), ("operators", (16, 10)), ("wide", (32, 37)), ("masked", (17, 19))],
)
def test_attention_without_a_fused_kernel_moves_its_scores(
    softmax: Softmax, more: tuple[int, int]
) -> None:
    """Beside what one kernel for the softmax moves, which backward is six bytes for four."""
    k, c = fitted(), setting(attention="unfused", zero=1, softmax=softmax)
    z, known = sizes(LLAMA, 4096), rates(c, device("a100-80"), k)
    products = replace(k, elementwise_eager=0.0, elementwise_fused=0.0)
    factor = k.elementwise_fused if softmax == "fused" else k.elementwise_eager
    seconds = 4096 * 4096 * 32 * factor / known.memory
    without = attention_time(c, z, 4096, known, products)
    whole = attention_time(c, z, 4096, known, k)
    for before, after, base, added in zip(without, whole, (4, 6), more, strict=True):
        assert after - before == pytest.approx((base + added) * seconds)


def test_compiled_attention_has_one_kernel_for_its_softmax() -> None:
    z = sizes(LLAMA, 4096)
    fused, compiled = (
        setting(attention="unfused", kernels="compiled", softmax=softmax)
        for softmax in ("fused", "wide")
    )
    assert score_bytes(compiled, z) == score_bytes(fused, z)


def test_autocast_moves_fp32_between_layers_and_casts_inputs_and_weights() -> None:
    """The input of five projections, and back; norms and sums of two; positions; each weight."""
    sums, norms, places = (4, 4), (35 - 48, 107 - 111), (69 - 43, 86 - 53)
    k, c = fitted(), setting(zero=0, machine=machine(1))
    z, known = sizes(LLAMA, 4096), rates(c, device("a100-80"), k)
    plain, cast = (layer_time(replace(c, autocast=each), z, known, k) for each in (False, True))
    tokens = c.micro_batch * c.sequence
    inputs = [
        tokens * (LLAMA.hidden * (passed * 5 * 6 + 2 * (total + norm)) + place * (z.query + z.keys))
        for passed, total, norm, place in zip((1, 2), sums, norms, places, strict=True)
    ]
    weights = 6 * LLAMA.hidden * (2 * z.query + z.keys_and_values + 3 * LLAMA.ffn)
    second = k.elementwise_eager / known.memory
    more = cast.elementwise_forward - plain.elementwise_forward
    assert more == pytest.approx(second * (inputs[0] + weights))
    more = cast.elementwise_backward - plain.elementwise_backward
    assert more == pytest.approx(second * (inputs[1] + weights))


def test_states_of_few_bits_take_less_time_to_update() -> None:
    times = [
        predict(setting(zero=0, machine=machine(1), precision=precision, optimizer=optimizer))
        for precision, optimizer in (
            ("bf16_true", "adamw"),
            ("bf16", "adamw_8bit"),
            ("bf16", "adamw"),
        )
    ]
    narrow, eight_bit, mixed = (each.time.optimizer for each in times)
    assert narrow / mixed == pytest.approx((2 + 2 * 6) / (4 + 2 * 12 + 4 + 2))
    assert eight_bit / mixed == pytest.approx((4 + 2 * 6 + 4 + 2) / (4 + 2 * 12 + 4 + 2))


def test_aleph_alphas_engine_copies_scores_and_masks_the_copy() -> None:
    assert ALEPH["softmax"] == "masked"


def test_aleph_alphas_engine_sends_more_inside_a_replica() -> None:
    usual = setting(zero=1, tensor=2, pipeline=2, global_batch=64)
    more = replace(usual, whole_transfers=True, separate_projections=True)
    slower, before = predict(more).time, predict(usual).time
    assert slower.tensor == pytest.approx(before.tensor * 5 / 4)
    assert slower.pipeline > before.pipeline


def test_sequence_parallelism_leaves_each_rank_a_part_to_send() -> None:
    usual = setting(zero=1, tensor=2, pipeline=2, global_batch=64, sequence_parallel=True)
    assert predict(replace(usual, whole_transfers=True)).time == predict(usual).time


@pytest.mark.parametrize(("stages", "layers"), [(2, 17), (4, 9), (8, 5)])
def test_stages_of_as_many_modules_wait_for_one_of_more_layers(stages: int, layers: int) -> None:
    """Of 32 layers and three further modules, the first stages have one more than the last."""
    c = setting(zero=1, pipeline=stages, even_modules=True, micro_batch=4, whole_transfers=True)
    each, head = 1.0, 0.5
    waited = wait_time(c, sizes(LLAMA, c.sequence), each, head, exposure=0.5)
    average = (LLAMA.layers * each + head) / stages
    assert waited == pytest.approx(c.micro_batches * (layers * each - average))


def test_a_last_stage_with_a_long_output_layer_is_waited_for() -> None:
    c = setting(zero=1, pipeline=2, even_modules=True)
    waited = wait_time(c, sizes(LLAMA, c.sequence), 1.0, 8.0, exposure=0.5)
    assert waited == pytest.approx(c.micro_batches * (15 + 8 - (32 + 8) / 2))


def test_full_recomputation_of_each_module_covers_the_output_layer() -> None:
    c = setting(zero=1, tensor=2, recompute="full", whole_logits=True)
    once, again = (predict(replace(c, recomputed_head=each)).time.head for each in (False, True))
    d, k = device("a100-80"), fitted()
    r, links, words = rates(c, d, k), cluster_links(c, d, k), LLAMA.vocabulary
    tokens = c.micro_batch * c.sequence
    forward = product_time(tokens, LLAMA.hidden, words / 2, r, r.matmul_16)[0]
    forward += gather(2 * tokens * words, 2, 2, links) + 8 * tokens * words / r.memory
    assert again - once == pytest.approx(c.micro_batches * forward)


def exchange_time(**changes: object) -> float:
    """Return the seconds of exchanging tokens among eight devices that share 128 experts."""
    experts = replace(LLAMA, ffn=768, experts=128, active_experts=8)
    c = setting(experts, expert=8, kernels="fused", **changes)
    links = cluster_links(c, device("a100-80"), fitted())
    latency = 4 * links.inside_latency
    return expert_time(c, sizes(c.model, c.sequence), links) - latency


def test_a_token_travels_once_to_a_device_with_several_of_its_experts() -> None:
    each, joined = exchange_time(), exchange_time(joined_dispatch=True)
    devices_of_a_token = 8 * (1 - (7 / 8) ** 8)
    assert joined / each == pytest.approx(devices_of_a_token / 8)


def test_consecutive_experts_are_on_one_device() -> None:
    joined = exchange_time(joined_dispatch=True, consecutive_experts=True)
    assert exchange_time() / joined == pytest.approx(8)


def test_consecutive_experts_that_no_device_holds_together_are_on_neighbours() -> None:
    """Sixteen devices hold eight experts each; six in turn cross to the next for one in two."""
    experts = replace(LLAMA, ffn=768, experts=128, active_experts=6)
    wide = setting(experts, machine=machine(16), expert=16, consecutive_experts=True)
    links = cluster_links(wide, device("a100-80"), fitted())
    seconds = expert_time(wide, sizes(experts, wide.sequence), links)
    nodes = 1 + (6 - 2) / 64
    sent = 2 * 4096 * 4096 * nodes / 2 / (links.node / 8)
    assert seconds == pytest.approx(4 * (sent + links.node_latency + links.hop))


def test_tensor_parallelism_divides_the_work_of_experts() -> None:
    """Eight devices do the same work of experts, as two replicas of four or as eight of one."""
    mixture = replace(LLAMA, experts=8, active_experts=2)
    k, each = replace(fitted(), expert_layer_ms=0.0, matmul_traffic=0.0), []
    for tensor in (1, 4):
        c = setting(mixture, expert=2, tensor=tensor, micro_batch=tensor, recompute="none")
        s, r = sizes(mixture, c.sequence), rates(c, device("a100-80"), k)
        dense = layer_time(c, sizes(replace(LLAMA, ffn=1), c.sequence), r, k).matmul_forward
        each.append(layer_time(c, s, r, k).matmul_forward - dense)
    assert each[1] == pytest.approx(each[0], rel=0.01)


def test_offloading_sends_sums_of_gradients_back_and_forth() -> None:
    c = setting(zero=2, offload="optimizer", deepspeed=True)
    plain = predict(replace(c, deepspeed=False)).time.optimizer
    copies = LLAMA.parameters / 8 * (7 * 2 + 4) / rates(c, device("a100-80"), fitted()).host
    scaling = LLAMA.parameters / 8 * 8 / host_rate(c.machine)
    assert predict(c).time.optimizer - plain == pytest.approx(copies + scaling)


def test_pageable_memory_slows_what_is_copied_to_and_from_the_host() -> None:
    c = setting(zero=2, offload="optimizer", deepspeed=True)
    host, each = rates(c, device("a100-80"), fitted()).host, LLAMA.parameters / 8
    sent, fetched = each * (8 * 2 + 4), each * (2 + 7 * 2)
    slower = sent * (1 / 1.4e9 - 1 / host) + fetched * 5 / host
    more = predict(replace(c, pageable=True)).time.optimizer - predict(c).time.optimizer
    assert more == pytest.approx(slower)


@pytest.mark.parametrize(
    ("precision", "moved"), [("bf16", 28 + 6), ("fp32", 28), ("bf16_true", 14)]
)
def test_a_host_moves_the_bytes_of_the_states_that_it_updates(
    precision: Precision, moved: int
) -> None:
    """Adam reads weight, gradient and two moments, and writes all but the gradient."""
    assert updated_bytes(setting(precision=precision, offload="optimizer")) == moved


def test_one_thread_updates_less_than_a_share_of_the_processors() -> None:
    c = setting(zero=2, offload="optimizer", machine=machine(vcpus=96))
    one = replace(c, machine=replace(c.machine, host_threads=1))
    longer = predict(one).time.optimizer - predict(c).time.optimizer
    assert longer == pytest.approx(LLAMA.parameters / 8 * 34 * (1 / 13.3e9 - 8 / (96 * 1.3e9)))
    many = replace(c, machine=replace(c.machine, host_threads=96))
    assert predict(many) == predict(c)


def test_a_slow_host_is_inside_the_interval() -> None:
    prediction = predict(setting(zero=2, offload="optimizer", deepspeed=True))
    assert prediction.high_s > prediction.step_time_s + 3 * prediction.time.optimizer


def test_padding_of_experts_is_that_of_the_fullest_of_random_ones() -> None:
    """Beside a hundred draws; a switch of the engine, without which nothing is padded."""
    mixture = replace(LLAMA, experts=8, active_experts=2)
    c = setting(mixture, sequence=2048, padded_experts=True)
    s = sizes(mixture, c.sequence)
    each = c.sequence * s.routed / s.experts
    random = Random(7)
    draws = [
        max(Counter(random.choices(range(s.experts), k=round(each * s.experts))).values())
        for _ in range(100)
    ]
    assert padding(c, s) == pytest.approx(sum(draws) / len(draws) / each, rel=0.01)
    assert padding(replace(c, padded_experts=False), s) == 1
    assert predict(c).step_time_s > predict(replace(c, padded_experts=False)).step_time_s


@pytest.mark.parametrize(("experts", "times"), [(8, 3.84), (16, 7.68), (2, 1.0)])
def test_a_fresh_gate_sends_most_tokens_to_the_same_experts(experts: int, times: float) -> None:
    """As many times more than its share as was measured, and never more than all of them."""
    mixture = replace(LLAMA, experts=experts, active_experts=2)
    c = setting(mixture, padded_experts=True, fresh_gate=True)
    assert padding(c, sizes(mixture, c.sequence)) == pytest.approx(times, rel=0.01)


def test_a_step_of_one_graph_waits_neither_for_launches_nor_for_counts_of_tokens() -> None:
    mixture = replace(LLAMA, experts=8, active_experts=2)
    c = setting(mixture, whole_graph=True)
    assert predict(c).time.other == pytest.approx(fitted().step_overhead_ms * 1e-3)
    routing = LLAMA.layers * c.micro_batches * fitted().expert_layer_ms * 1e-3
    assert predict(replace(c, whole_graph=False)).time.other > routing


def test_fused_experts_move_nothing_between_their_products() -> None:
    mixture = replace(LLAMA, experts=8, active_experts=2)
    c = setting(mixture, precision="mxfp8", kernels="fused")
    s, fused = sizes(mixture, c.sequence), replace(c, fused_experts=True)
    both = zip(elementwise_bytes(c, s), elementwise_bytes(fused, s), (6, 10), strict=True)
    for plain, less, moved in both:
        assert plain - less == pytest.approx(moved * s.routed * s.expert_ffn)
    less = cast_bytes(c, s, fitted()) - cast_bytes(fused, s, fitted())
    assert less == pytest.approx(fitted().cast_bytes * s.routed * s.expert_ffn)
