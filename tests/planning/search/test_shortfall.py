"""Without a plan: what is missing, by how much, and what would help."""

from __future__ import annotations

import re

import pytest

from orchestration.planning.model.configuration import Optimizer
from orchestration.planning.model.typical_shapes import of_size, transformer
from orchestration.planning.search.answers.plans import Plans
from orchestration.planning.search.answers.shortfall import state_gb
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.objective import (
    Aim,
    Objective,
    by_deadline,
    within_budget,
)
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Lora
from tests.planning.search.questions import LLAMA_7B, chosen, task


def test_lora_needs_less_state() -> None:
    assert state_gb(task(lora=Lora(rank=16))) < state_gb(task()) / 5
    assert state_gb(task()) == pytest.approx(16 * LLAMA_7B.parameters / 1e9)


@pytest.mark.parametrize(("optimizer", "each"), [("adamw", 16), ("momentum", 12), ("sgd", 8)])
def test_an_optimizer_keeps_its_moments(optimizer: Optimizer, each: int) -> None:
    gb = state_gb(task(optimizer=optimizer))
    assert gb == pytest.approx(each * LLAMA_7B.parameters / 1e9)


def missing(answer: Plans) -> str:
    assert answer.chosen is None
    return "\n".join(answer.missing)


def test_too_large_a_model_says_by_how_much_and_what_would_do() -> None:
    model = transformer(
        layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28672, vocabulary=128256, name="llama-70b"
    )
    where = Space(types=("ml.g5.48xlarge",), counts=(1, 2, 4), offload=("none",))
    text = missing(find_plans(task(model=model), where))
    assert "llama-70b, 70.6 billion parameters in bf16 with adamw, needs 1,129 GB of state" in text
    assert "the allowed 4 x ml.g5.48xlarge hold 768 GB" in text
    assert "allow more instances: " in text
    assert "allow other instances: " in text
    assert "LoRA" in text


def test_a_model_for_which_one_instance_is_too_small_is_told_how_many_others_hold_it() -> None:
    where = Space(types=("ml.g5.xlarge",), counts=(1,))
    text = missing(find_plans(task(model=of_size(1e12)), where))
    assert re.search(r"allow more and other instances: \d+ x ml\.", text)


@pytest.mark.parametrize(("minutes", "possible"), [(0.1, False), (60, True)])
def test_a_missed_deadline_says_by_how_much(minutes: float, possible: bool) -> None:
    where = Space(types=("ml.g5.12xlarge",), counts=(1,))
    text = missing(find_plans(task(), where, by_deadline(minutes * 60)))
    assert "the fastest plan, 1 x ml.g5.12xlarge, may take " in text
    assert "more than the deadline of " in text
    assert ("allow other instances" in text) == possible


@pytest.mark.slow
def test_too_small_a_budget_says_by_how_much() -> None:
    where = Space(types=("ml.p4d.24xlarge",))
    text = missing(find_plans(task(), where, within_budget(3)))
    assert "the cheapest plan, " in text
    assert "more than the budget of $3.00" in text


AIMS: tuple[Aim, Aim] = ("cheapest", "fastest")


def test_limits_that_only_clash_with_each_other_are_told_together() -> None:
    where = Space(types=("ml.p4d.24xlarge",), counts=(1, 32))
    cheap, fast = (chosen(find_plans(task(), where, Objective(aim=aim))) for aim in AIMS)
    assert cheap.cost_usd is not None
    assert cheap.instance_count < fast.instance_count
    both = Objective(deadline_s=fast.time_s.high * 1.01, budget_usd=cheap.cost_usd.high * 1.01)
    text = missing(find_plans(task(), where, both))
    assert "$-" not in text
    assert "the fastest plan within the budget, " in text
    assert "the cheapest plan within the deadline, " in text


def test_quotas_that_leave_nothing_are_the_reason() -> None:
    text = missing(find_plans(task(), Space(quotas={"ml.*": 0})))
    assert text.startswith("the counts and quotas leave no instance")


def test_what_is_not_known_is_not_the_first_reason() -> None:
    text = missing(find_plans(task(), Space(types=("ml.m5.*", "ml.p3.*"))))
    assert "bf16" in text.splitlines()[0]
    assert text.count("training on CPUs") <= 1


def test_a_precision_that_no_device_has_says_what_would_do() -> None:
    text = missing(find_plans(task(), Space(types=("ml.p3.16xlarge",))))
    assert "has no bf16 matrix units" in text
    assert "allow other instances" in text


def test_no_instance_of_a_name() -> None:
    assert "ml.nope.*" in missing(find_plans(task(), Space(types=("ml.nope.*",))))


def test_lora_is_named_in_what_is_missing() -> None:
    model = of_size(400e9, name="a 400B model")
    where = Space(types=("ml.g5.xlarge",), counts=(1,))
    text = missing(find_plans(task(model=model, lora=Lora(rank=16)), where))
    assert "with LoRA of rank 16, needs 8" in text  # 800 GB of frozen weights and a little


def test_state_that_fits_is_not_all_there_is() -> None:
    where = Space(types=("ml.p4d.24xlarge",), counts=(1,), offload=("none",))
    text = missing(
        find_plans(task(model=of_size(18e9, name="an 18B model"), sequence=65536), where)
    )
    assert "but not beside activations" in text


def test_a_least_deadline_that_is_told_is_enough() -> None:
    where = Space(types=("ml.p4d.24xlarge",), counts=(1, 2))
    text = missing(find_plans(task(), where, by_deadline(60)))
    [hours] = re.findall(r"the least deadline_h is ([\d.]+)", text)
    assert find_plans(task(), where, by_deadline(float(hours) * 3600)).chosen is not None


def test_strategies_that_can_not_run_there_are_told_one_that_can() -> None:
    where = Space(types=("ml.trn1.32xlarge",), strategies=frozenset({"smp_v2"}))
    text = missing(find_plans(task(), where))
    assert re.search(r"allow other strategies: \d+ x ml.trn1.32xlarge .*torch_distributed", text)


def test_a_precision_without_units_is_told_one_with() -> None:
    where = Space(types=("ml.p4d.24xlarge",))
    text = missing(find_plans(task(precision="fp8"), where))
    assert "has no fp8 matrix units" in text
    assert re.search(r"train in bf16: \d+ x ml.p4d.24xlarge", text)
