"""Plans that no other beats, and simpler ones that are about as good."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.objective import (
    CHEAPEST,
    FASTEST,
    Objective,
)
from tests.planning.search.questions import GPT2, LLAMA_7B, chosen, whole


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


def test_a_simpler_layout_that_is_about_as_fast_is_named() -> None:
    answer = whole(GPT2)
    simpler = answer.simpler
    if simpler is not None:
        assert simpler.layout.rank < chosen(answer).layout.rank
        assert simpler.time_s.expected <= 1.02 * chosen(answer).time_s.expected
    same = replace(
        answer, alternatives=(replace(chosen(answer), layout=Layout(family="single", rank=-1)),)
    )
    assert same.simpler is not None


def test_differences_are_whole_numbers_that_people_say() -> None:
    details = " ".join(r.detail for r in whole(LLAMA_7B).rejected if r.reason == "not the best")
    assert "times the time" in details
    assert not re.search(r"\d{3}% ", details)
