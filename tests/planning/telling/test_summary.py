"""Plans in words and short tables."""

from __future__ import annotations

from orchestration.planning.search.answers.plans import HEADINGS, row
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.objective import (
    FASTEST,
)
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import KnownRate
from orchestration.planning.telling.summary import facts
from tests.planning.search.questions import chosen, plans, task


def test_an_estimated_price_is_called_one() -> None:
    lines = dict(facts(chosen(plans("ml.p5en.48xlarge"))))
    assert "estimated" in lines["cost"]
    assert "2026-07-20" in lines["cost"]
    assert "listed" in dict(facts(chosen(plans())))["cost"]


def test_a_row_has_a_cell_per_heading() -> None:
    assert len(row(chosen(plans()))) == len(HEADINGS)


def test_savings_of_memory_are_shown() -> None:
    where = Space(types=("ml.g5.12xlarge",), counts=(1,), longest_run_s=1e9)
    lines = dict(facts(chosen(find_plans(task(), where))))
    assert "recomputation" in lines["to save memory"] or "offloaded" in lines["to save memory"]


def test_a_learning_rate_is_shown() -> None:
    lines = dict(facts(chosen(plans(learning_rate=KnownRate(value=1e-4, batch=64)))))
    assert lines["learning rate"].startswith("0.0002 (square root rule, x 2)")


def test_several_instances_get_advice_on_their_network() -> None:
    alone = find_plans(task(), Space(types=("ml.p4d.24xlarge",), counts=(1,)))
    many = find_plans(task(), Space(types=("ml.p4d.24xlarge",), counts=(4,)))
    assert "Availability Zone" not in str(facts(chosen(alone)))
    assert "Availability Zone" in str(facts(chosen(many)))
    assert "security group" in str(facts(chosen(many)))


def test_a_plan_without_a_price_says_so() -> None:
    plan = chosen(find_plans(task(), Space(types=("ml.p5e.48xlarge",), counts=(1,)), FASTEST))
    assert plan.cost_usd is None
    assert dict(facts(plan))["cost"] == "unknown"
    assert row(plan)[-1] == "?"
