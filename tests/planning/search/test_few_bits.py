"""Adapters over frozen weights of few bits (QLoRA)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestration.catalog import instances
from orchestration.planning.calibration.spellings import frozen_bits
from orchestration.planning.cost.prediction import predict
from orchestration.planning.model.configuration import Precision
from orchestration.planning.model.typical_shapes import of_size
from orchestration.planning.search.answers.shortfall import state_gb
from orchestration.planning.search.configurations import configuration, machine_of
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.layouts import layouts
from orchestration.planning.search.objective import CHEAPEST
from orchestration.planning.search.request import PlanRequest
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Lora, Task
from tests.planning.search.questions import LLAMA_70B, chosen, task
from tests.planning.search.test_request import REQUEST

QLORA = Lora(rank=16, targets="all", bits=4)


def test_a_request_asks_for_few_bits() -> None:
    request = PlanRequest.model_validate(REQUEST | {"lora": {"rank": 8, "bits": 4}})
    assert request.task().lora == Lora(rank=8, bits=4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"framework": {"name": "tensorflow"}}, "take pytorch or huggingface"),
        ({"precision": "fp8"}, "in bf16, fp16 or fp32"),
    ],
)
def test_what_has_no_weights_of_few_bits_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PlanRequest.model_validate(REQUEST | {"lora": {"rank": 8, "bits": 8}} | change)


@pytest.mark.parametrize(("bits", "cell"), [(None, "bf16"), (4, "NF4"), (8, "INT8")])
def test_published_rows_mean_the_same_bits(bits: Literal[4, 8] | None, cell: str) -> None:
    assert Lora(rank=8, bits=bits).frozen_bits == frozen_bits(cell)


@settings(max_examples=30, deadline=None)
@given(
    size=st.floats(3e8, 1e11),
    name=st.sampled_from(["ml.g5.xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge"]),
    precision=st.sampled_from(["bf16", "fp16", "fp32"]),
    sequence=st.sampled_from([512, 4096]),
)
def test_fewer_bits_take_less_memory_and_are_never_faster(
    size: float, name: str, precision: Precision, sequence: int
) -> None:
    wanted = task(of_size(size), precision=precision, sequence=sequence)
    instance = instances()[name]
    for layout in layouts(replace(wanted, lora=replace(QLORA, bits=8)), instance, 1):
        whole, eight, four = (
            predict(
                configuration(
                    replace(wanted, lora=replace(QLORA, bits=bits)),
                    layout, machine_of(instance, 1, layout),
                    batch=8, micro=1, recompute="full", offload="none",
                )
            )
            for bits in (None, 8, 4)
        )  # fmt: skip
        assert four.memory.weights < eight.memory.weights < whole.memory.weights
        assert four.memory.need < eight.memory.need < whole.memory.need
        assert whole.step_time_s <= four.step_time_s
        assert whole.step_time_s <= eight.step_time_s


def kinds(wanted: Task, name: str) -> set[str]:
    return {str(layout) for layout in layouts(wanted, instances()[name], 1)}


def test_layouts_are_those_of_bitsandbytes() -> None:
    four = kinds(task(lora=QLORA), "ml.g5.12xlarge")
    assert four == {
        "one device", "data parallel", "ZeRO-1 over 4", "ZeRO-2 over 4", "FSDP over 4",
        "FSDP over 2",
    }  # fmt: skip
    eight = kinds(task(lora=replace(QLORA, bits=8)), "ml.g5.12xlarge")
    assert eight == {layout for layout in four if "FSDP" not in layout}


def test_trainium_has_no_weights_of_few_bits() -> None:
    answer = find_plans(task(lora=QLORA), Space(types=("ml.trn1.32xlarge",)), CHEAPEST)
    assert any("bitsandbytes" in rejection.detail for rejection in answer.rejected)


def test_few_bits_are_offered_where_adapters_do_not_fit() -> None:
    where = Space(types=("ml.g5.12xlarge",), counts=(1,), offload=("none",))
    wanted = task(of_size(34e9), 8, lora=Lora(rank=16), samples=10_000)
    answer = find_plans(wanted, where, CHEAPEST)
    assert answer.chosen is None
    text = "\n".join(answer.missing)
    assert "or fine-tune with LoRA of rank 16 over weights of 4 bits" in text
    four = replace(wanted, lora=Lora(rank=16, bits=4))
    assert state_gb(four) < state_gb(wanted) / 3
    assert chosen(find_plans(four, where, CHEAPEST)).configuration.frozen_bits == 4.5


def test_few_bits_that_do_not_fit_leave_nothing_to_offer() -> None:
    where = Space(types=("ml.g5.xlarge",), counts=(1,), offload=("none",))
    answer = find_plans(task(LLAMA_70B, 8, lora=QLORA), where, CHEAPEST)
    text = "\n".join(answer.missing)
    assert "with LoRA of rank 16 over weights of 4 bits, needs" in text
    assert "or fine-tune" not in text
