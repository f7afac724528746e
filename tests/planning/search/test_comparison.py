"""Plans that no other beats, and those that are simpler or surer and about as good."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

import pytest

from orchestration.planning.model.measurements import model_digest
from orchestration.planning.model.typical_shapes import transformer
from orchestration.planning.search.answers.plans import Range, simplest
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.objective import (
    CHEAPEST,
    FASTEST,
    Objective,
    by_deadline,
    within_budget,
)
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Lora
from orchestration.planning.telling.screen import screen
from tests.planning.search.questions import LLAMA_7B, LLAMA_70B, chosen, measurement, task, whole


def test_the_front_is_not_beaten() -> None:
    front = whole(LLAMA_7B).front
    times = [plan.time_s.expected for plan in front]
    costs = [plan.cost_usd.expected for plan in front if plan.cost_usd is not None]
    assert times == sorted(times)
    assert costs == sorted(costs, reverse=True)
    assert len(costs) == len(front) >= 2


@pytest.mark.parametrize("objective", [CHEAPEST, FASTEST], ids=str)
def test_the_chosen_is_on_the_front(objective: Objective) -> None:
    answer = whole(LLAMA_7B, objective)
    assert (answer.passed_over or chosen(answer)) in answer.front


def test_of_layouts_that_take_about_as_long_the_simplest_is_chosen() -> None:
    where = Space(types=("ml.p4d.24xlarge",), counts=(1,))
    answer = find_plans(task(LLAMA_7B, 64, lora=Lora(rank=8)), where)
    plan, best = chosen(answer), answer.alternatives[0]
    assert str(plan.layout) == "data parallel"
    assert best.time_s.expected < plan.time_s.expected <= 1.02 * best.time_s.expected
    assert best.layout.rank > plan.layout.rank
    assert plan in answer.contenders
    assert best not in answer.contenders


def test_a_simpler_layout_is_not_chosen_if_it_breaks_a_limit() -> None:
    where = Space(types=("ml.p4d.24xlarge",), counts=(1,))
    lora = task(LLAMA_7B, 64, lora=Lora(rank=8))
    best = find_plans(lora, where).alternatives[0]
    answer = find_plans(lora, where, by_deadline(best.time_s.high))
    assert str(chosen(answer).layout) == str(best.layout)


def test_what_fits_without_offloading_does_not_offload() -> None:
    where = Space(types=("ml.p5.48xlarge",), counts=(1,))
    few = task(LLAMA_70B, 32, lora=Lora(rank=16, bits=4))
    offloading = replace(where, offload=("optimizer", "all"))
    assert find_plans(few, offloading).chosen is not None
    assert chosen(find_plans(few, where)).configuration.offload == "none"
    needs = task(LLAMA_70B, 32)
    assert chosen(find_plans(needs, where)).configuration.offload != "none"


def test_more_instances_without_offloading_are_preferred_within_the_interval() -> None:
    where = Space(types=("ml.p4d.24xlarge",), counts=(1, 2))
    answer = find_plans(task(LLAMA_70B, 128, lora=Lora(rank=16, bits=4), sequence=8192), where)
    assert answer.passed_over is not None
    assert answer.passed_over.configuration.offload != "none"
    assert chosen(answer).configuration.offload == "none"
    text = "\n".join(screen(answer, "chat"))
    assert "what offloading takes is the least sure of all" in " ".join(text.split())


def test_differences_are_whole_numbers_that_people_say() -> None:
    details = " ".join(r.detail for r in whole(LLAMA_7B).rejected if r.reason == "not the best")
    assert "times the time" in details
    assert not re.search(r"\d{3}% ", details)


def test_offloading_that_is_faster_at_the_high_end_is_chosen() -> None:
    heads = replace(LLAMA_70B, kv_heads=64)
    where = Space(types=("ml.p4d.24xlarge",), counts=(8,))
    needs = task(heads, 512, sequence=4096, engine="deepspeed")
    answer = find_plans(needs, where, FASTEST)
    without = find_plans(needs, replace(where, offload=("none",)), FASTEST)
    assert chosen(answer).configuration.offload == "optimizer"
    assert chosen(answer).time_s.high < chosen(without).time_s.expected
    assert answer.scaling == (answer.chosen,)


def test_the_least_deadline_and_budget_are_those_that_a_plan_keeps() -> None:
    heads = replace(LLAMA_70B, kv_heads=64)
    where = Space(types=("ml.p4d.24xlarge",), counts=(8,))
    needs = task(heads, 512, sequence=4096, engine="deepspeed")
    for limit, unit in ((by_deadline(3600), "deadline_h"), (within_budget(100), "budget_usd")):
        answer = find_plans(needs, where, limit)
        found = re.search(rf"the least {unit} is ([0-9.]+)", " ".join(answer.missing))
        assert found is not None
        least = float(found[1])
        make = by_deadline if unit == "deadline_h" else within_budget
        scale = 3600 if unit == "deadline_h" else 1
        assert find_plans(needs, where, make(least * scale)).chosen is not None
        assert find_plans(needs, where, make(least * scale * 0.9)).chosen is None


@pytest.mark.parametrize("bits", [4, 8])
def test_adapters_of_16_bits_are_not_ruled_out_by_those_of_32(bits: Literal[4, 8]) -> None:
    few = task(
        replace(LLAMA_7B, kv_heads=8, ffn=14336, vocabulary=128256),
        128,
        sequence=4096,
        lora=Lora(rank=8, targets="all", bits=bits),
    )
    types = ("ml.p4d.24xlarge", "ml.p5.48xlarge", "ml.g5.48xlarge")
    best = chosen(find_plans(few, Space(types=types, counts=(1, 2, 4))))
    alone = chosen(find_plans(few, Space(types=("ml.p5.48xlarge",), counts=(1,))))
    assert best.cost_usd is not None
    assert alone.cost_usd is not None
    assert best.cost_usd.expected <= alone.cost_usd.expected


def test_measurements_without_a_time_of_the_model_leave_offloading_unsure() -> None:
    where = Space(types=("ml.p5.48xlarge",), counts=(1,))
    few = task(LLAMA_70B, 32, lora=Lora(rank=16, bits=4))
    plan = chosen(find_plans(few, where))
    lacking = measurement(plan, out_of_memory=True)
    stranger = measurement(plan, step_time_s=99.0, model=model_digest(LLAMA_7B))
    for row in (lacking, stranger):
        told = replace(few, measurements=(row,))
        assert chosen(find_plans(told, where)).configuration.offload == "none"


LLAMA_30B = transformer(layers=60, hidden=6656, heads=52, vocabulary=128256)


def test_a_plan_that_offloads_too_is_not_surer_by_its_price_alone() -> None:
    where = Space(types=("ml.p4de.24xlarge", "ml.g5.48xlarge"), counts=(1,))
    answer = find_plans(task(LLAMA_30B, 32, sequence=1024), where, FASTEST)
    slow = find_plans(
        task(LLAMA_30B, 32, sequence=1024), replace(where, types=("ml.g5.48xlarge",)), FASTEST
    )
    assert chosen(slow).configuration.offload != "none"
    assert chosen(slow).time_s.high > chosen(answer).time_s.high
    assert chosen(answer).instance_type == "ml.p4de.24xlarge"
    assert chosen(answer).configuration.offload != "none"


def test_a_simpler_layout_that_may_take_longer_is_not_chosen() -> None:
    where = Space(types=("ml.p5.48xlarge",), counts=(1,))
    answer = find_plans(task(LLAMA_30B, 128, sequence=1024, optimizer="sgd"), where)
    best, other = answer.alternatives[0], chosen(answer)
    assert simplest(best, [best, other]) is other
    time = other.time_s
    unsure = replace(other, time_s=Range(time.low, time.expected, 1.1 * best.time_s.high))
    assert simplest(best, [best, unsure]) is best
