"""Plans that no other beats, and those that are simpler or surer and about as good."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from orchestration.planning.search.find import find_plans
from orchestration.planning.search.objective import (
    CHEAPEST,
    FASTEST,
    Objective,
    by_deadline,
)
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Lora
from orchestration.planning.telling.screen import screen
from tests.planning.search.questions import LLAMA_7B, LLAMA_70B, chosen, task, whole


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
