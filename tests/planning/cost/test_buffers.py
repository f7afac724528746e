"""Memory beside states and activations, as engines allocate it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestration.planning.cost.buffers import (
    GIB,
    bucket_bytes,
    context_gib,
    gathered_bytes,
    update_bytes,
)
from orchestration.planning.cost.model_states import local_parameters, stage_parameters
from orchestration.planning.cost.prediction import predict
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes, sizes
from tests.planning.settings import LLAMA, machine, setting

LAYER = (LLAMA.parameters - LLAMA.embedding_parameters) / LLAMA.layers
ENDS = LLAMA.embedding_parameters


def of(c: Configuration) -> Sizes:
    return sizes(c.model, c.sequence)


def test_fsdp_holds_two_layers_one_gradient_and_the_ends() -> None:
    c = setting()
    assert gathered_bytes(c, of(c)) == pytest.approx(2 * (2 * LAYER + LAYER + 2 * ENDS), rel=0.001)


def test_a_reduction_in_fp32_copies_one_layers_gradient() -> None:
    c = setting()
    wide = replace(c, gradient_bytes=4)
    more = gathered_bytes(wide, of(c)) - gathered_bytes(c, of(c))
    assert more == pytest.approx(4 * LAYER, rel=0.001)


def test_accumulating_without_reducing_keeps_the_whole_gradient() -> None:
    """KempnerForge saw 87 GB of it with 175 billion parameters and 4 tensor-parallel ranks."""
    c = setting(gradient_bytes=4, whole_gradients=True)
    assert c.micro_batches > 1
    assert gathered_bytes(c, of(c)) > 4 * LLAMA.parameters - 2 * LLAMA.parameters / 8
    once = replace(c, global_batch=8)
    assert gathered_bytes(once, of(once)) == gathered_bytes(
        replace(once, whole_gradients=False), of(once)
    )


def test_an_adapter_has_no_whole_gradients() -> None:
    c = setting(trainable=10**6)
    assert gathered_bytes(c, of(c)) == pytest.approx(2 * (2 * LAYER + ENDS), rel=0.001)


def test_deepspeed_gathers_up_to_a_number_of_parameters() -> None:
    c = setting(deepspeed=True)
    embedding = LLAMA.vocabulary * LLAMA.hidden  # larger than the bucket
    assert gathered_bytes(c, of(c)) == 2 * 1e9 + 2 * 2 * embedding
    wide = replace(c, reduce_bucket=1e9)
    assert gathered_bytes(wide, of(c)) == 2 * 1e9 + 2 * 2 * 1e9


def test_deepspeed_gathers_nothing_for_one_rank_but_has_its_buckets() -> None:
    alone = setting(deepspeed=True, machine=machine(1), trainable=10**6)
    assert gathered_bytes(alone, of(alone)) == 2 * 5e8
    earlier = replace(alone, zero=2, reduce_bucket=2e8)
    assert bucket_bytes(earlier, of(earlier)) == 2 * 2 * 2e8


def test_fsdp_of_one_rank_accumulates_whole_gradients_in_the_reduced_precision() -> None:
    """KempnerForge wraps the model on one rank, too: 4 bytes instead of 2 for each gradient."""
    c = setting(
        machine=machine(1), precision="bf16_true", gradient_bytes=4, whole_gradients=True,
        global_batch=4,
    )  # fmt: skip
    assert gathered_bytes(c, of(c)) == 2 * local_parameters(c, of(c))
    assert gathered_bytes(replace(c, global_batch=1), of(c)) == 0


def test_a_whole_embedding_is_not_divided_by_tensor_parallelism() -> None:
    c = setting(tensor=4, whole_embedding=True)
    divided = local_parameters(replace(c, whole_embedding=False), of(c))
    table = LLAMA.vocabulary * LLAMA.hidden
    assert local_parameters(c, of(c)) - divided == table * 3 / 4


def test_the_fullest_stage_has_whole_layers() -> None:
    even, uneven = (setting(machine=machine(n), zero=0, pipeline=n) for n in (4, 5))
    layers = (LLAMA.parameters - LLAMA.embedding_parameters) / LLAMA.layers
    assert stage_parameters(even, of(even)) == pytest.approx(8 * layers)
    assert stage_parameters(uneven, of(uneven)) == pytest.approx(7 * layers)


def test_deepspeed_sums_bf16_gradients_of_a_pipeline_in_fp32_and_shards_none() -> None:
    c = setting(deepspeed=True, zero=1, pipeline=4, machine=machine(64))
    whole = bucket_bytes(c, of(c)) - bucket_bytes(replace(c, precision="fp16"), of(c))
    assert whole == 2 * local_parameters(c, of(c))


def test_deepspeed_copies_what_a_rank_updates_when_activations_are_gone() -> None:
    c = setting(deepspeed=True, zero=2, micro_batch=4)
    assert update_bytes(c, of(c)) > 6 * LLAMA.parameters / 8
    copied, plain = predict(c).memory, predict(replace(c, deepspeed=False)).memory
    assert copied.need - plain.need == pytest.approx(bucket_bytes(c, of(c)) / GIB)
    assert copied.total - plain.total > update_bytes(c, of(c)) / GIB


def test_an_optimizer_without_fused_kernels_needs_memory_when_activations_are_gone() -> None:
    """InternEvo: a copy of the gradients in fp32, and two intermediate results of AdamW."""
    c = setting(machine=machine(4), zero=1, pipeline=4, update_bytes=12, sequence=2048)
    assert update_bytes(c, of(c)) == 12 * local_parameters(c, of(c))
    unfused, fused = predict(c).memory, predict(replace(c, update_bytes=0)).memory
    assert unfused.need - unfused.states > update_bytes(c, of(c)) / GIB > fused.need - fused.states


def test_every_kind_of_parallelism_has_channels_of_its_own() -> None:
    alone = setting(machine=machine(1), zero=0)
    deep = setting(machine=machine(64), tensor=4, pipeline=4)
    assert context_gib(alone) < context_gib(setting()) < context_gib(deep) < 3


def test_embedding_and_output_layer_of_their_own_are_gathered_like_layers() -> None:
    """Two at a time of what is one unit otherwise, and one gradient."""
    c, z = setting(precision="bf16_true"), sizes(LLAMA, 4096)
    end, layer = LLAMA.vocabulary * LLAMA.hidden, z.common_parameters / z.layers
    assert gathered_bytes(c, z) == pytest.approx(2 * (2 * layer + 2 * end) + 2 * layer + 4 * end)
    apart = replace(c, separate_ends=True)
    assert gathered_bytes(apart, z) == pytest.approx(2 * (layer + end) + 2 * end)
    adapter = replace(apart, trainable=10**6)
    assert gathered_bytes(adapter, z) == pytest.approx(2 * (layer + end))
