"""Plans that less is known of do not win by less than what is unknown."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import botocore.session

from orchestration.catalog import instances, is_scarce
from orchestration.planning.calibration.rows import complete
from orchestration.planning.calibration.rows import configuration as validated
from orchestration.planning.cost.devices import devices
from orchestration.planning.cost.prediction import predict
from orchestration.planning.model.regimes import MEASURED, is_known, regime
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.preference import is_measured
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Framework
from orchestration.planning.telling.summary import answer as told
from tests.planning.search.questions import GPT2, LLAMA_7B, chosen, space, task, whole
from tests.planning.settings import machine, setting


def test_blackwell_is_not_the_default_on_no_dense_measurement() -> None:
    answer = whole(LLAMA_7B)
    assert chosen(answer).instance_type == "ml.p5.48xlarge"
    best = answer.passed_over
    assert best is not None
    assert best.instance_type.startswith("ml.p6-")
    assert best.cost_usd is not None
    cost = chosen(answer).cost_usd
    assert cost is not None
    assert best.cost_usd.expected < cost.expected <= best.cost_usd.high


def test_what_was_not_measured_widens_the_interval() -> None:
    p6 = chosen(find_plans(task(), space("ml.p6-b200.48xlarge", counts=(1,))))
    p5 = chosen(find_plans(task(), space("ml.p5.48xlarge", counts=(1,))))
    assert p6.time_s.high / p6.time_s.expected > p5.time_s.high / p5.time_s.expected
    assert p6.cost_usd is not None
    # The estimated price widens the cost further.
    assert p6.cost_usd.high / p6.cost_usd.expected > p6.time_s.high / p6.time_s.expected


def test_a_choice_by_an_estimated_price_names_the_best_listed_one() -> None:
    names = ("ml.p6-b200.48xlarge", "ml.p3.16xlarge")
    wanted = task(precision="fp16")
    answer = find_plans(wanted, space(*names, counts=(4,), region="us-east-1"))
    assert chosen(answer).price is not None
    assert chosen(answer).instance_type == "ml.p6-b200.48xlarge"
    assert answer.listed is not None
    assert answer.listed.instance_type == "ml.p3.16xlarge"
    notes = " ".join(text for name, text in told(answer) if name == "note")
    assert "the price is an estimate; at a listed price, 4 x ml.p3.16xlarge" in notes
    assert "often out of stock" in notes


def test_gpus_that_a_container_may_not_drive_are_the_last_choice() -> None:
    old = Framework(name="tensorflow", version="2.11.0")
    names = ("ml.p6-b200.48xlarge", "ml.p4d.24xlarge")
    answer = find_plans(task(GPT2, framework=old), space(*names))
    assert chosen(answer).instance_type == "ml.p4d.24xlarge"
    alone = chosen(find_plans(task(GPT2, framework=old), space(names[0])))
    assert any("compiles for minutes at each start" in warning for warning in alone.warnings)


def test_gpus_that_a_container_cannot_drive_have_that_one_reason() -> None:
    old = Framework(name="huggingface", version="4.26.0")
    answer = find_plans(task(GPT2, framework=old), space("ml.p6-b200.48xlarge"))
    assert answer.chosen is None
    [reason] = {each.detail for each in answer.rejected}
    assert reason.count("need CUDA 12.8 or later") == 1


def test_a_plan_that_is_passed_over_says_why() -> None:
    answer = whole(LLAMA_7B)
    reasons = [r.detail for r in answer.rejected if r.instance_type == "ml.p6-b200.48xlarge"]
    assert any("its price is an estimate and no published dense training" in r for r in reasons)


def test_a_listed_price_takes_the_doubt_away() -> None:
    where = Space(types=("ml.p6-b200.48xlarge", "ml.p5.48xlarge"), counts=(1,))
    prices = {name: where.price(name) for name in where.types}
    listed = {name: replace(price, estimate=False) for name, price in prices.items() if price}
    answer = find_plans(task(), replace(where, prices=listed))
    assert answer.listed is None


def test_the_accelerators_that_count_as_measured_are_in_the_tables() -> None:
    known = set()
    for name in ("benchmarks.csv", "unseen.csv"):
        with Path("tests/data/planner", name).open(newline="", encoding="utf-8-sig") as file:
            for row in map(complete, csv.DictReader(file)):
                try:
                    c = validated(row)
                except ValueError:
                    continue
                kind = "experts" if c.model.experts else "bits" if c.narrow else "dense"
                known.add((kind, c.machine.accelerator))
                assert regime(c)
    used = {each.accelerator for each in instances().values()}
    for kind, names in MEASURED.items():
        assert {(kind, name) for name in names} <= known
    assert {d for kind, d in known if kind == "dense" and d in used} == MEASURED["dense"] & used
    assert not is_measured(task(), "b200")


def test_scarce_types_are_those_that_aws_sells_as_reserved_capacity() -> None:
    service = botocore.session.get_session().get_service_model("sagemaker")
    reserved = service.shape_for("ReservedCapacityInstanceType").enum
    assert {name for name in reserved if is_scarce(name)} == set(reserved)
    assert not is_scarce("ml.g5.xlarge")


def test_a_device_on_which_nothing_was_measured_is_predicted_less_surely() -> None:
    assert {name for name in devices() if not is_known(name)} == {"t4", "l4", "l40s", "trn2"}
    known, unknown = (predict(setting(machine=machine(accelerator=a))) for a in ("h100", "l4"))
    assert unknown.high_s / unknown.step_time_s > known.high_s / known.step_time_s
    assert unknown.memory_high_gib / unknown.memory_gib > known.memory_high_gib / known.memory_gib
