"""Memory against published formulas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestration.planning.cost.activations import kept_bytes, layer_bytes
from orchestration.planning.cost.coefficients import fitted
from orchestration.planning.cost.memory import memory_use
from orchestration.planning.cost.model_states import state_bytes
from orchestration.planning.cost.prediction import predict
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import sizes
from tests.planning.settings import GPT, LLAMA, machine, setting

BILLION = 1e9


def megatron(**changes: object) -> Configuration:
    """Return the setting of the paper on selective recomputation: dropout, attention not fused."""
    usual = {
        "attention": "unfused", "kernels": "fused", "dropout": "all", "precision": "fp16",
        "sequence": 2048, "zero": 0, "machine": machine(64),
    }  # fmt: skip
    return setting(GPT, **(usual | changes))


@pytest.mark.parametrize(
    ("zero", "gigabytes"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.88)], ids=str
)
def test_states_are_those_of_the_zero_paper(zero: int, gigabytes: float) -> None:
    """https://arxiv.org/abs/1910.02054, figure 1: 7.5 billion parameters, 64 ranks."""
    c = megatron(zero=zero)
    assert state_bytes(c, 7.5 * BILLION).total / BILLION == pytest.approx(gigabytes, rel=0.005)


@pytest.mark.parametrize(
    ("precision", "zero", "per_parameter"),
    [("bf16", 0, 18.0), ("bf16", 1, 6 + 12 / 64), ("fp32", 0, 16.0), ("fp32", 1, 8 + 8 / 64)],
)
def test_states_are_those_of_megatrons_distributed_optimizer(
    precision: str, zero: int, per_parameter: float
) -> None:
    """The table in Megatron-LM's docs: bf16 weights with fp32 gradients, and fp32."""
    c = megatron(precision=precision, zero=zero, gradient_bytes=4)
    assert state_bytes(c, 1.0).total == pytest.approx(per_parameter)


@pytest.mark.parametrize("tensor", [1, 2, 8])
@pytest.mark.parametrize("sequence_parallel", [False, True])
def test_activations_are_those_of_the_paper_on_recomputation(
    tensor: int, sequence_parallel: bool
) -> None:
    """https://arxiv.org/abs/2205.05198, table 2."""
    c = megatron(tensor=tensor, sequence_parallel=sequence_parallel)
    h, a, s, t = GPT.hidden, GPT.heads, c.sequence, tensor
    whole = h * (34 + 5 * a * s / h) / t if sequence_parallel else h * (10 + 24 / t) + 5 * a * s / t
    outside = 34 * h / t if sequence_parallel else h * (10 + 24 / t)
    kept = 2 * h / t if sequence_parallel else 2 * h
    z = sizes(GPT, s)
    assert layer_bytes(c, z) == pytest.approx(whole)
    assert kept_bytes(replace(c, recompute="attention"), z) == pytest.approx(outside)
    assert kept_bytes(replace(c, recompute="full"), z) == pytest.approx(kept)


def test_sequence_parallelism_splits_all_that_recomputed_operators_keep() -> None:
    z = sizes(LLAMA, 4096)
    c = setting(recompute="operators", sequence_parallel=True, kernels="fused")
    halves = [kept_bytes(replace(c, tensor=tensor), z) for tensor in (1, 2, 4)]
    assert halves == [halves[0], halves[0] / 2, halves[0] / 4]


def test_first_stage_keeps_a_pipeline_full_of_micro_batches() -> None:
    z = sizes(GPT, 2048)
    flat = memory_use(megatron(pipeline=4, global_batch=1024), z, fitted())
    deep = memory_use(megatron(pipeline=4, interleave=2, global_batch=1024), z, fitted())
    assert deep.activations / flat.activations == pytest.approx(1 + 3 / (4 * 2))


def test_offload_empties_the_device_of_optimizer_states() -> None:
    c = setting(offload="optimizer", zero=2)
    assert predict(c).memory.optimizer == 0
    everything = replace(c, offload="all", zero=3)
    assert predict(everything).memory.states == 0
    packed = replace(everything, trainable=10**7, frozen_bits=4.5, precision="bf16_true")
    assert predict(replace(packed, wide_ends=True)).memory.states == 0


def test_experts_are_shared_by_the_ranks_that_hold_the_same() -> None:
    """Of 64 ranks 16 hold other experts: 4 share what one has, 64 share the rest."""
    c = setting(GPT, machine=machine(64), zero=1, expert=16)
    assert state_bytes(c, 640.0, 64.0).optimizer == pytest.approx(12 * (640 / 64 + 64 / 4))


def test_adapter_trains_next_to_nothing() -> None:
    c = setting(zero=0, precision="bf16_true", trainable=4_194_304)
    use = predict(c).memory
    assert use.weights == pytest.approx(2 * (LLAMA.parameters + 4_194_304) / 2**30)
    assert use.gradients + use.optimizer < 0.05


def test_peft_keeps_adapter_and_ends_of_packed_weights_in_fp32() -> None:
    c = setting(zero=0, precision="bf16_true", trainable=10**8, frozen_bits=4.25)
    use = predict(c).memory
    assert use.gradients + use.optimizer == pytest.approx((4 + 8) * 10**8 / 2**30)
    wide = predict(replace(c, wide_ends=True)).memory
    assert wide.weights - use.weights == pytest.approx(2 * LLAMA.embedding_parameters / 2**30)
    assert predict(setting(wide_ends=True)).memory == predict(setting()).memory


@pytest.mark.parametrize(
    ("changes", "per_parameter"),
    [
        # FSDP2 casts reduced gradients to the precision of the weights it shards.
        ({"zero": 3, "gradient_bytes": 4}, 16.0),
        ({"zero": 3, "gradient_bytes": 4, "precision": "bf16_true"}, 8.0),
        ({"zero": 0, "gradient_bytes": 4, "precision": "bf16_true"}, 8 * 8.0),
        # DeepSpeed moves gradients to the host, where the optimizer's states are.
        ({"zero": 2, "deepspeed": True, "offload": "optimizer"}, 2 * 8.0),
    ],
)
def test_gradients_are_stored_as_engines_do(changes: dict[str, Any], per_parameter: float) -> None:
    assert state_bytes(setting(**changes), 8.0).total == pytest.approx(per_parameter)


@pytest.mark.parametrize(("loss", "per_logit"), [("plain", 8), ("copied", 14)])
def test_gathered_logits_are_whole_on_every_rank(loss: str, per_logit: int) -> None:
    c = setting(tensor=4, loss=loss, recompute="full", micro_batch=8, whole_logits=True)
    logits = per_logit * 8 * c.sequence * LLAMA.vocabulary
    split = predict(replace(c, whole_logits=False)).memory
    assert predict(c).memory.working == pytest.approx(logits / 2**30)
    assert split.working < predict(c).memory.working / 3


def test_a_fused_norm_keeps_less_than_its_operators() -> None:
    z, c = sizes(LLAMA, 4096), setting(kernels="eager")
    less = layer_bytes(c, z) - layer_bytes(replace(c, fused_norms=True), z)
    assert less == 2 * (4 + 2 - 2) * LLAMA.hidden


def test_adapters_of_attention_leave_frozen_networks_without_their_inputs() -> None:
    z = sizes(LLAMA, 4096)
    c = setting(precision="bf16_true", trainable=10**6)
    every, some = (
        layer_bytes(replace(c, adapter_targets=targets), z) for targets in ("all", "attention")
    )
    assert every - some == 2 * (LLAMA.hidden + LLAMA.ffn)
    assert layer_bytes(replace(c, trainable=None), z) - every == 2 * 2 * LLAMA.hidden


def test_autocast_keeps_activations_between_layers_in_fp32() -> None:
    """And casts the input of each of a layer's five projections for itself."""
    z = sizes(LLAMA, 4096)
    c = setting(zero=0, machine=machine(1), kernels="fused")
    cast = replace(c, autocast=True)
    assert layer_bytes(cast, z) - layer_bytes(c, z) == (2 * 2 + 3 * 2) * LLAMA.hidden
    full = [kept_bytes(replace(each, recompute="full"), z) for each in (c, cast)]
    assert full == [2 * LLAMA.hidden, 4 * LLAMA.hidden]
    assert state_bytes(cast, 1.0).total == 4 + 4 + 8


def test_softmax_in_fp32_is_kept_beside_its_cast() -> None:
    z, c = sizes(LLAMA, 4096), setting(attention="unfused")
    wide = layer_bytes(replace(c, softmax="wide"), z)
    assert wide - layer_bytes(c, z) == 4 * LLAMA.heads * 4096
    plain = setting(GPT, attention="unfused", sequence=2048)
    z = sizes(GPT, 2048)
    assert layer_bytes(replace(plain, softmax="wide"), z) == layer_bytes(plain, z)


def test_gradients_are_not_there_yet_when_the_loss_is_computed() -> None:
    """Unless their buffers stay, or other micro-batches have made them."""
    c = setting(zero=0, machine=machine(1), global_batch=2, micro_batch=2, recompute="full")
    fresh, kept = predict(c).memory, predict(replace(c, kept_gradients=True)).memory
    assert kept.need > fresh.need >= fresh.states + fresh.context
    several = predict(replace(c, global_batch=4)).memory
    assert several.need == kept.need
    assert predict(replace(c, sequence=64)).memory.need < fresh.need


def test_fsdp_gathers_packed_matrices_as_they_are_stored() -> None:
    """Llama 2 70B on 24 GB: bitsandbytes' ``quant_storage``, as answer.ai's fsdp_qlora uses it."""
    model = replace(LLAMA, layers=80, hidden=8192, heads=64, ffn=28672, vocabulary=32000)
    c = setting(
        model, precision="bf16_true", trainable=10**7, frozen_bits=4.127, recompute="full",
        sequence=512, global_batch=4, machine=machine(4, "a10g", device_memory_gib=24.0),
    )  # fmt: skip
    assert predict(c).memory.gathered < 2
    assert predict(c).fits


def test_peft_widens_nothing_beside_matrices_of_gptq() -> None:
    c = setting(precision="bf16_true", trainable=10**7, frozen_bits=4.25, wide_ends=True)
    assert c.residual_bytes == 4
    assert replace(c, separate_unpacking=True).residual_bytes == 2


def test_need_leaves_out_what_the_allocator_gives_back() -> None:
    use = predict(setting()).memory
    assert use.total == pytest.approx(use.need + use.slack)
    assert use.slack > 0


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_more_ranks_never_need_more_memory(zero: int) -> None:
    needs = [
        predict(setting(zero=zero, machine=machine(n), global_batch=1024)).memory.need
        for n in (8, 16, 64, 256)
    ]
    assert needs == sorted(needs, reverse=True)
