from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestration.planning.configuration import Optimizer
from orchestration.planning.layouts import Layout
from orchestration.planning.learning_rates import advice
from orchestration.planning.objective import FASTEST, Aim, Objective, by_deadline, within_budget
from orchestration.planning.plan import Plan, Plans
from orchestration.planning.request import PlanRequest, evened
from orchestration.planning.search import search
from orchestration.planning.shapes import ModelError
from orchestration.planning.shortfall import state_gb
from orchestration.planning.space import Space
from orchestration.planning.summary import answer as told_answer
from orchestration.planning.summary import facts, memory_parts, rejected, row, time_parts
from orchestration.planning.task import Batch, KnownRate, Lora, Task
from orchestration.planning.usual_shapes import of_size, transformer
from orchestration.strategies import TorchDistributed

LLAMA_7B = transformer(layers=32, hidden=4096, heads=32, vocabulary=32000, name="llama-2-7b")
GPT2 = transformer(layers=12, hidden=768, heads=12, vocabulary=50257, name="gpt2")

REQUEST: dict[str, Any] = {
    "model": {"layers": 32, "hidden": 4096, "heads": 32, "vocabulary": 32000},
    "sequence": 4096,
    "batch": {"samples": 256},
    "data": {"samples": 10_000},
}


def task(**change: Any) -> Task:
    batch = Batch(least=256, most=256)
    usual = Task(model=LLAMA_7B, sequence=2048, samples=100_000, batch=batch)
    return replace(usual, **change)


def plans(types: str = "ml.p4d.24xlarge", **change: Any) -> Plans:
    return search(task(**change), Space(types=(types,), counts=(1, 2, 4)))


def chosen(answer: Plans) -> Plan:
    assert answer.chosen is not None
    return answer.chosen


# What a plan says.


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


def test_an_estimated_price_is_called_one() -> None:
    told = dict(facts(chosen(plans("ml.p5en.48xlarge"))))
    assert "estimated" in told["cost"]
    assert "2026-07-20" in told["cost"]
    assert "listed" in dict(facts(chosen(plans())))["cost"]


def test_spot_without_a_known_saving_warns() -> None:
    where = Space(types=("ml.p4d.24xlarge",), spot=True)
    assert any("spot" in text for text in chosen(search(task(), where)).warnings)


def test_a_known_saving_lowers_the_cost() -> None:
    usual = chosen(plans()).cost_usd
    where = Space(types=("ml.p4d.24xlarge",), counts=(1, 2, 4), spot=True, spot_saving=0.6)
    spot = chosen(search(task(), where)).cost_usd
    assert usual is not None
    assert spot is not None
    assert spot.expected == pytest.approx(0.4 * usual.expected)


def test_a_saving_that_was_counted_on_is_told() -> None:
    where = Space(types=("ml.p4d.24xlarge",), spot=True, spot_saving=0.6)
    assert any("60%" in text for text in chosen(search(task(), where)).warnings)


def test_sequences_longer_than_the_model_was_made_for_are_told() -> None:
    model = replace(LLAMA_7B, max_sequence=1024)
    told = [one for one in chosen(plans(model=model)).warnings if "1,024" in one]
    assert len(told) == 1
    assert not any("made for" in one for one in chosen(plans()).warnings)


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


def test_a_row_has_a_cell_per_heading() -> None:
    from orchestration.planning.summary import HEADINGS

    assert len(row(chosen(plans()))) == len(HEADINGS)


def test_rejections_are_told_once() -> None:
    answer = search(task(), Space())
    told = [one.what for one in rejected(answer) if one.reason == "not known"]
    assert len(told) < 10
    assert any("ml.m5.*" in what for what in told)


# Learning rates.


@pytest.mark.parametrize(
    ("optimizer", "rule", "rate"), [("sgd", "linear", 0.4), ("adamw", "square root", 0.2)]
)
def test_the_rate_follows_the_batch(optimizer: str, rule: str, rate: float) -> None:
    found = advice(task(optimizer=optimizer, learning_rate=KnownRate(value=0.1, batch=64)), 256)
    assert found is not None
    assert found.rule == rule
    assert found.rate == pytest.approx(rate)


def test_past_the_critical_batch_the_rate_falls() -> None:
    known = KnownRate(value=0.1, batch=64)
    critical = task(learning_rate=known, batch=Batch(least=64, most=4096, critical=128))
    here, beyond = advice(critical, 128), advice(critical, 4096)
    assert here is not None
    assert beyond is not None
    assert beyond.rate < here.rate
    assert "critical" in beyond.note


def test_without_a_known_rate_there_is_no_advice() -> None:
    assert advice(task(), 256) is None


def test_a_batch_past_the_critical_needs_more_samples() -> None:
    batch = Batch(least=100, most=400, critical=100)
    assert batch.samples_factor(100) == 1
    assert batch.samples_factor(400) == 2.5
    assert batch.sizes == (100, 200, 400)
    assert replace(batch, critical=None).samples_factor(400) == 1


@pytest.mark.parametrize("critical", [64.0, 1e9])
def test_the_critical_batch_bounds_the_batch(critical: float) -> None:
    batch = Batch(least=64, most=8192, critical=critical)
    where = Space(types=("ml.p4d.24xlarge",), counts=(8,))
    plan = chosen(search(task(batch=batch), where, FASTEST))
    assert (plan.configuration.global_batch > 1024) == (critical > 64)


# LoRA.


def test_lora_needs_less_state() -> None:
    assert state_gb(task(lora=Lora(rank=16))) < state_gb(task()) / 5
    assert state_gb(task()) == pytest.approx(16 * LLAMA_7B.parameters / 1e9)


@pytest.mark.parametrize(("optimizer", "each"), [("adamw", 16), ("momentum", 12), ("sgd", 8)])
def test_an_optimizer_keeps_its_moments(optimizer: Optimizer, each: int) -> None:
    gb = state_gb(task(optimizer=optimizer))
    assert gb == pytest.approx(each * LLAMA_7B.parameters / 1e9)


# What is missing.


def missing(answer: Plans) -> str:
    assert answer.chosen is None
    return "\n".join(answer.missing)


def test_too_large_a_model_says_by_how_much_and_what_would_do() -> None:
    model = transformer(
        layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28672, vocabulary=128256, name="llama-70b"
    )
    where = Space(types=("ml.g5.48xlarge",), counts=(1, 2, 4), offload=("none",))
    text = missing(search(task(model=model), where))
    assert "llama-70b, 70.6 billion parameters in bf16 with adamw, needs 1,129 GB of state" in text
    assert "the allowed 4 x ml.g5.48xlarge hold 768 GB" in text
    assert "allow more instances: " in text
    assert "allow other instances: " in text
    assert "LoRA" in text


@pytest.mark.parametrize(("minutes", "possible"), [(0.1, False), (60, True)])
def test_a_missed_deadline_says_by_how_much(minutes: float, possible: bool) -> None:
    where = Space(types=("ml.g5.12xlarge",), counts=(1,))
    text = missing(search(task(), where, by_deadline(minutes * 60)))
    assert "the fastest plan, 1 x ml.g5.12xlarge, may take " in text
    assert "more than the deadline of " in text
    assert ("allow other instances" in text) == possible


def test_too_small_a_budget_says_by_how_much() -> None:
    where = Space(types=("ml.p4d.24xlarge",))
    text = missing(search(task(), where, within_budget(3)))
    assert "the cheapest plan, " in text
    assert "more than the budget of $3.00" in text


AIMS: tuple[Aim, Aim] = ("cheapest", "fastest")


def test_limits_that_only_clash_with_each_other_are_told_together() -> None:
    where = Space(types=("ml.p4d.24xlarge",), counts=(1, 4))
    cheap, fast = (chosen(search(task(), where, Objective(aim=aim))) for aim in AIMS)
    assert cheap.cost_usd is not None
    assert cheap.instance_count < fast.instance_count
    both = Objective(deadline_s=fast.time_s.high * 1.01, budget_usd=cheap.cost_usd.high * 1.01)
    text = missing(search(task(), where, both))
    assert "$-" not in text
    assert "the fastest plan within the budget, " in text
    assert "the cheapest plan within the deadline, " in text


def test_quotas_that_leave_nothing_are_the_reason() -> None:
    text = missing(search(task(), Space(quotas={"ml.*": 0})))
    assert text.startswith("the counts and quotas leave no instance")


def test_what_is_not_known_is_not_the_first_reason() -> None:
    text = missing(search(task(), Space(types=("ml.m5.*", "ml.p3.*"))))
    assert "bf16" in text.splitlines()[0]
    assert text.count("no model of training on CPUs") <= 1


def test_a_precision_that_no_device_has_says_what_would_do() -> None:
    text = missing(search(task(), Space(types=("ml.p3.16xlarge",))))
    assert "has no bf16 matrix units" in text
    assert "allow other instances" in text


def test_no_instance_of_a_name() -> None:
    assert "ml.nope.*" in missing(search(task(), Space(types=("ml.nope.*",))))


# Requests.


def test_a_request_becomes_a_search() -> None:
    given = PlanRequest.model_validate(
        {
            **REQUEST,
            "precision": "fp16",
            "data": {"tokens": 4096e6, "epochs": 2},
            "lora": {"rank": 8, "targets": "all"},
            "learning_rate": {"value": 1e-4, "batch": 64},
            "framework": {"name": "pytorch", "version": "2.5.1"},
            "instances": {"types": ["ml.p4d.*"], "counts": [2], "quotas": {"ml.p4d.*": 3}},
            "strategies": ["torch_distributed"],
            "objective": "fastest",
            "deadline_h": 2,
            "budget_usd": 100,
        }
    )
    wanted, where, objective = given.task(), given.space(), given.wanted()
    assert wanted.model.parameters == LLAMA_7B.parameters
    assert wanted.samples == 2_000_000
    assert wanted.lora == Lora(rank=8, targets="all")
    assert wanted.framework.version == "2.5.1"
    assert where.counts_of("ml.p4d.24xlarge") == (2,)
    assert where.strategies == frozenset({"torch_distributed"})
    assert (objective.aim, objective.deadline_s, objective.budget_usd) == ("fastest", 7200, 100)


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ({"parameters": 7e9}, 7_000_000_000),
        ({"config": {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12,
                     "n_positions": 1024, "vocab_size": 50257}}, 124_439_808),
    ],
)  # fmt: skip
def test_models_come_in_three_ways(model: dict[str, Any], parameters: int) -> None:
    given = PlanRequest.model_validate(REQUEST | {"model": model})
    assert given.task().model.parameters == parameters


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": {}}, "give one of config"),
        ({"model": {"parameters": 7e9, "layers": 3}}, "give one of config"),
        ({"model": {"layers": 3, "hidden": 64}}, "needed together"),
        ({"batch": {}}, "give samples or tokens"),
        ({"batch": {"samples": 1, "tokens": 3}}, "give samples or tokens"),
        ({"data": {"epochs": 3}}, "give samples or tokens"),
        ({"precision": "int4"}, "fp32"),
        ({"sequence": 0}, "greater than or equal to 1"),
        ({"batch": {"samples": 64, "up_to_samples": 32}}, "up to fewer"),
        ({"batch": {"tokens": 2e6, "up_to_tokens": 1e6}}, "up to fewer"),
        ({"strategies": ["smp_v3"]}, "did you mean 'smp_v2'"),
        ({"instances": {"counts": []}}, "at least 1"),
        ({"instances": {"quotas": {"ml.p4d": 1}}}, "no instance type is called 'ml.p4d'"),
    ],
)
def test_contradictions_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PlanRequest.model_validate(REQUEST | change)


@given(st.floats(1, 1e7))
def test_a_batch_in_tokens_is_taken_as_about_so_many(samples: float) -> None:
    found = evened(samples)
    assert abs(found - samples) <= max(0.5, 0.05 * samples) + 1e-9
    assert found < 64 or found % 4 == 0


# Words.


def test_what_saves_memory_is_told() -> None:
    where = Space(types=("ml.g5.12xlarge",), counts=(1,), longest_run_s=1e9)
    told = dict(facts(chosen(search(task(), where))))
    assert "recomputation" in told["to save memory"] or "offloaded" in told["to save memory"]


def test_a_rate_is_told() -> None:
    told = dict(facts(chosen(plans(learning_rate=KnownRate(value=1e-4, batch=64)))))
    assert told["learning rate"].startswith("0.0002 (square root rule, x 2)")


def test_several_instances_are_told_to_stay_together() -> None:
    alone = search(task(), Space(types=("ml.p4d.24xlarge",), counts=(1,)))
    many = search(task(), Space(types=("ml.p4d.24xlarge",), counts=(4,)))
    assert "Availability Zone" not in str(facts(chosen(alone)))
    assert "Availability Zone" in str(facts(chosen(many)))
    assert "security group" in str(facts(chosen(many)))


def test_a_plan_without_a_price_says_so() -> None:
    plan = chosen(search(task(), Space(types=("ml.p5e.48xlarge",), counts=(1,)), FASTEST))
    assert plan.cost_usd is None
    assert dict(facts(plan))["cost"] == "no price is known"
    assert row(plan)[-1] == "?"


def test_a_simpler_layout_is_told() -> None:
    answer = plans()
    plan = chosen(answer)
    layout = Layout(family="replicated", rank=-1)
    simple = replace(plan, layout=layout, strategy=TorchDistributed())
    told = str(told_answer(replace(answer, alternatives=(simple,))))
    assert "data parallel (torch_distributed) is simpler and about as fast (+0.0% time)" in told


def test_rejections_on_the_chosen_instances_come_first() -> None:
    where = Space(types=("ml.p4d.24xlarge", "ml.g5.12xlarge"), counts=(1,))
    first = rejected(search(task(), where))[0]
    assert first.what.endswith("on the chosen instances")
    assert first.reason == "memory"


@pytest.mark.parametrize(
    ("objective", "text"),
    [
        (FASTEST, "fastest"),
        (by_deadline(7200), "cheapest within 2.0 h"),
        (within_budget(500), "fastest for $500 at the most"),
    ],
)
def test_objectives_are_words(objective: Objective, text: str) -> None:
    assert str(objective) == text


def test_lora_is_named_in_what_is_missing() -> None:
    model = of_size(400e9, name="a 400B model")
    where = Space(types=("ml.g5.xlarge",), counts=(1,))
    text = missing(search(task(model=model, lora=Lora(rank=16)), where))
    assert "with LoRA of rank 16, needs 8" in text  # 800 GB of frozen weights and a little


def test_a_batch_or_model_that_is_none_is_refused() -> None:
    with pytest.raises(ModelError, match="from 4 to 2"):
        Batch(least=4, most=2)
    with pytest.raises(ModelError, match="critical batch of -1"):
        Batch(least=4, most=8, critical=-1)


def test_state_that_fits_is_not_all_there_is() -> None:
    where = Space(types=("ml.p4d.24xlarge",), counts=(1,), offload=("none",))
    text = missing(search(task(model=of_size(18e9, name="an 18B model"), sequence=65536), where))
    assert "but not beside activations" in text
