"""Plans: their time, memory, cost and warnings."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from orchestration.planning.model.typical_shapes import of_size
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.space import Space
from orchestration.planning.telling.summary import memory_parts, time_parts
from tests.planning.search.questions import LLAMA_7B, chosen, plans, task


def test_a_plan_is_json() -> None:
    data = plans().data()
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_the_parts_add_up() -> None:
    plan = chosen(plans())
    step = plan.data()["step_s"]
    memory = plan.data()["memory_gib"]
    assert isinstance(step, dict)
    assert isinstance(memory, dict)
    ends = ("total", "low", "high")
    assert sum(step[name] for name in step if name not in ends) == pytest.approx(step["total"])
    held = ("weights", "gradients", "optimizer", "gathered", "activations", "working", "context")
    assert sum(memory[name] for name in held) == pytest.approx(memory["need"])
    assert dict(time_parts(plan)).keys() <= step.keys()
    assert dict(memory_parts(plan)).keys() <= memory.keys()


def test_a_plan_costs_what_its_instances_cost() -> None:
    plan = chosen(plans())
    assert plan.cost_usd is not None
    assert plan.price is not None
    assert plan.cost_usd.expected == pytest.approx(plan.instance_hours * plan.price.usd_per_hour)
    assert plan.cost_usd.low < plan.cost_usd.expected < plan.cost_usd.high


def test_a_plan_trains_on_all_samples() -> None:
    plan = chosen(plans())
    assert plan.steps == 391  # 100,000 / 256, rounded up
    assert plan.time_s.expected == pytest.approx(391 * plan.prediction.step_time_s)
    c = plan.configuration
    assert c.micro_batch * c.micro_batches * c.data == c.global_batch


def test_spot_without_a_known_saving_warns() -> None:
    where = Space(types=("ml.p4d.24xlarge",), spot=True)
    assert any("spot" in text for text in chosen(find_plans(task(), where)).warnings)


def test_a_known_saving_lowers_the_cost() -> None:
    usual = chosen(plans()).cost_usd
    where = Space(types=("ml.p4d.24xlarge",), counts=(1, 2, 4), spot=True, spot_saving=0.6)
    spot = chosen(find_plans(task(), where)).cost_usd
    assert usual is not None
    assert spot is not None
    assert spot.expected == pytest.approx(0.4 * usual.expected)


def test_an_assumed_saving_warns() -> None:
    where = Space(types=("ml.p4d.24xlarge",), spot=True, spot_saving=0.6)
    assert any("60%" in text for text in chosen(find_plans(task(), where)).warnings)


def test_sequences_longer_than_the_model_was_made_for_warn() -> None:
    model = replace(LLAMA_7B, max_sequence=1024)
    warnings = [text for text in chosen(plans(model=model)).warnings if "1,024" in text]
    assert len(warnings) == 1
    assert not any("made for" in text for text in chosen(plans()).warnings)


def test_offloading_names_the_threads_that_torchrun_does_not_give() -> None:
    where = Space(
        types=("ml.g5.12xlarge",), counts=(1,), strategies=frozenset({"torch_distributed"})
    )
    plan = chosen(find_plans(task(batch=16), where))
    assert plan.configuration.offload != "none"
    named = [text for text in plan.warnings if "OMP_NUM_THREADS=12" in text]
    assert len(named) == 1
    assert not any("OMP_NUM_THREADS" in text for text in chosen(plans()).warnings)


def test_a_guessed_model_warns_and_is_less_sure() -> None:
    guess = chosen(plans(model=of_size(LLAMA_7B.parameters)))
    exact = chosen(plans())
    assert any("config.json" in text for text in guess.warnings)
    assert guess.time_s.high / guess.time_s.low > exact.time_s.high / exact.time_s.low


def test_strategies_of_plans_are_valid_stages_of_a_pipeline() -> None:
    from pydantic import TypeAdapter

    from orchestration.strategies import Strategy

    answer = plans()
    for plan in (*answer.alternatives, chosen(answer)):
        again = TypeAdapter(Strategy).validate_python(plan.strategy.model_dump())
        assert again == plan.strategy
