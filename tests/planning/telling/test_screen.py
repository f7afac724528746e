"""The answer on one screen."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from orchestration.planning.search.answers.plans import Plans
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.objective import FASTEST, Objective, by_deadline, within_budget
from orchestration.planning.search.task import KnownRate
from orchestration.planning.telling.changes import changes
from orchestration.planning.telling.nearest import nearest
from orchestration.planning.telling.screen import screen
from tests.planning.search.questions import LLAMA_7B, LLAMA_70B, chosen, plans, space, task, whole

QUESTIONS = {
    "cheapest": lambda: whole(LLAMA_7B),
    "fastest": lambda: whole(LLAMA_7B, FASTEST),
    "deadline": lambda: find_plans(
        task(), space("ml.p4d.24xlarge", "ml.g5.*", "ml.p5.48xlarge"), by_deadline(6 * 600)
    ),
    "too large": lambda: find_plans(task(LLAMA_70B), space("ml.g5.*", counts=(1,))),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_fits_a_terminal_of_80_by_24(question: str) -> None:
    lines = screen(QUESTIONS[question](), "chat", 80)
    assert max(map(len, lines)) <= 80
    # A line is left for the command, or for what `orchestrate` says after it.
    assert len(lines) <= 23


@pytest.mark.parametrize("question", QUESTIONS)
def test_numbers_are_those_that_people_say(question: str) -> None:
    text = "\n".join(screen(QUESTIONS[question](), "chat"))
    assert not re.search(
        r"\d{3}%|([1-9]\.\d|\d\.\d\d)\d+ (s|min|h|days)|\d{2}\.\d+ (s|min|h|days)", text
    )


def test_a_unit_is_said_once() -> None:
    where = space("ml.p4d.24xlarge", "ml.p5.48xlarge", counts=(1, 2))
    text = "\n".join(screen(find_plans(task(), where), "chat"))
    assert re.search(r"time +[\d.]+ min \([\d.]+ to [\d.]+ min\)", text)


def test_every_price_has_a_date_and_all_have_one_region() -> None:
    answer = whole(LLAMA_7B)
    [prices] = [line for line in screen(answer, "chat") if line.startswith("prices")]
    shown = {chosen(answer).instance_type, *(each.instance_type for each in nearest(answer))}
    assert prices.startswith("prices      us-west-2, on demand")
    assert all(f"{name} $" in prices for name in shown)
    assert set(re.findall(r"(\w+) of \d{4}-\d\d-\d\d", prices)) == {"listed", "estimated"}


def test_the_nearest_are_of_other_types_in_the_order_of_their_cost() -> None:
    near = nearest(whole(LLAMA_7B))
    assert near[0].instance_type.startswith("ml.p6-")
    assert "its price is an estimate" in near[0].why
    assert len({each.instance_type for each in near} | {"ml.p5.48xlarge"}) == 4
    assert all("without communication" not in each.why for each in near)


def test_what_breaks_a_limit_says_by_how_much() -> None:
    answer = QUESTIONS["deadline"]()
    assert any("too long" in each.why for each in nearest(answer, 12))
    assert "a later deadline" in starts(answer)


def test_where_one_type_is_allowed_its_other_counts_are_near() -> None:
    near = nearest(plans())
    assert {each.instance_count for each in near} == {1, 2, 4} - {chosen(plans()).instance_count}


def test_misfits_come_last() -> None:
    answer = find_plans(task(), space("ml.g5.12xlarge", "ml.p4d.24xlarge", counts=(1,)))
    [near] = nearest(answer)
    assert near.instance_type == "ml.g5.12xlarge"


def starts(answer: Plans) -> list[str]:
    return [text.partition(":")[0] for text in changes(answer)]


def test_the_answer_says_what_would_change_it() -> None:
    texts = starts(whole(LLAMA_7B))
    assert texts[0] == "a measurement and a listed price"
    assert any(text.startswith("a deadline below") for text in texts)


def test_a_budget_that_stops_a_faster_plan_is_named() -> None:
    where = space("ml.p5.48xlarge")
    fastest, cheapest = find_plans(task(), where, FASTEST), find_plans(task(), where)
    costs = [plan.cost_usd.high for plan in map(chosen, (fastest, cheapest)) if plan.cost_usd]
    answer = find_plans(task(), where, within_budget(sum(costs) / 2))
    assert "a larger budget" in starts(answer)
    assert "an objective of cheapest" in starts(fastest)


def test_no_plan_says_what_is_missing_and_nothing_would_change_it() -> None:
    answer = find_plans(task(), space("ml.p4d.24xlarge"), Objective(deadline_s=60))
    lines = screen(answer, "chat")
    assert lines[0] == "chat: no plan (cheapest within 60 s)"
    assert "more than the deadline" in " ".join(lines)
    assert nearest(answer) == []
    assert changes(answer) == []


def test_a_learning_rate_and_savings_of_memory_are_shown() -> None:
    rate = KnownRate(value=1e-4, batch=64)
    assert "rate        0.0002 (square root rule, x 2)" in "\n".join(
        screen(plans(learning_rate=rate), "chat")
    )
    saved = find_plans(task(), space("ml.g5.12xlarge", counts=(1,), longest_run_s=1e9))
    assert re.search(r"memory .*, with .*(recomputation|offloaded)", "\n".join(screen(saved, "m")))


def test_the_listed_alternative_of_an_estimated_choice_is_a_note() -> None:
    answer = plans()
    text = "\n".join(screen(replace(answer, listed=chosen(answer)), "chat"))
    assert "the price is an estimate; at a listed price, 1 x ml.p4d.24xlarge (" in text
