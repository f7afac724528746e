"""Requests as users write them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestration.planning.search.request import PlanRequest, problems_of
from orchestration.planning.search.task import Lora, evened
from tests.planning.search.questions import LLAMA_7B

REQUEST: dict[str, Any] = {
    "model": {"layers": 32, "hidden": 4096, "heads": 32, "vocabulary": 32000},
    "sequence": 4096,
    "batch": {"samples": 256},
    "data": {"samples": 10_000},
}


def test_a_request_becomes_a_search() -> None:
    request = PlanRequest.model_validate(
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
    wanted, where, objective = request.task(), request.space(), request.goal()
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
    request = PlanRequest.model_validate(REQUEST | {"model": model})
    assert request.task().model.parameters == parameters


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": {}}, "give one of config"),
        ({"model": {"parameters": 7e9, "layers": 3}}, "give one of config"),
        ({"model": {"layers": 3, "hidden": 64}}, "required together"),
        ({"batch": {}}, "give samples or tokens"),
        ({"batch": {"samples": 1, "tokens": 3}}, "give samples or tokens"),
        ({"data": {"epochs": 3}}, "give samples or tokens"),
        ({"precision": "int4"}, "fp32"),
        ({"sequence": 0}, "greater than or equal to 1"),
        ({"batch": {"samples": 64, "up_to_samples": 32}}, "smaller than the batch"),
        ({"batch": {"tokens": 2e6, "up_to_tokens": 1e6}}, "smaller than the batch"),
        ({"strategies": ["smp_v3"]}, "did you mean 'smp_v2'"),
        ({"instances": {"counts": []}}, r"for example \[1, 2, 4\]"),
        ({"strategies": []}, "leave it out, which allows all"),
        ({"model": {"config": 5}}, "expected the content of a config.json"),
        (
            {"model": {"config": {"_class_name": "UNet2DConditionModel"}}},
            r"no formula .* 'UNet2DConditionModel' \(diffusion\); to plan by a probe",
        ),
        ({"instances": {"quotas": {"ml.p4d": 1}}}, "no instance type matches 'ml.p4d'"),
        ({"model": {"name": "Llama-3-8B"}}, "by its name, parameters: 8.0e9"),
        ({"model": {"layers": 3, "hidden": 64, "heads": 4}}, "vocabulary is missing"),
        ({"model": {"layers": 3, "hidden": 64, "heads": 7, "vocabulary": 9}}, "8 heads would do"),
        (
            {"model": {"config": {"model_type": "swin"}}},
            "no formula predicts models of type 'swin'",
        ),
        ({"batch": {"samples": 1, "up_to_tokens": 9000}}, "one unit: samples with up_to_samples"),
        ({"data": {"samples": 200}}, r"less than one batch \(200 of 256 samples"),
        ({"framework": {"version": "2.5.9"}}, r"container of pytorch 2.5.9 .* mean '2.5.1'"),
        ({"instances": {"types": []}}, "give one or more"),
        ({"instances": {"types": ["p4d.24xlarge"]}}, "did you mean 'ml.p4d.24xlarge'"),
        ({"instances": {"types": ["ml.p4dx.*"]}}, r"did you mean 'ml.p4d.\*'"),
        ({"instances": {"spot_saving": 0.6}}, "with spot: true only"),
        ({"instances": {"region": "eu-west-11"}}, "unknown region 'eu-west-11'; did you mean"),
    ],
)
def test_contradictions_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PlanRequest.model_validate(REQUEST | change)


def test_a_container_of_one_s_own_may_have_any_version() -> None:
    own = {"version": "9.9", "image": "1.dkr.ecr.us-east-1.amazonaws.com/mine:1"}
    assert PlanRequest.model_validate(REQUEST | {"framework": own}).task().framework.image


def test_every_problem_is_told_with_its_path() -> None:
    wrong: dict[str, Any] = {
        "model": {"config": {"model_type": "swin"}},
        "sequence": 0,
        "framework": {"version": 2.5},
        "instances": {"types": ["ml.q5"], "region": "nowhere"},
    }
    with pytest.raises(ValidationError) as error:
        PlanRequest.model_validate(REQUEST | wrong)
    problems = {problem.path: problem.message for problem in problems_of(error.value)}
    assert set(problems) == {
        "model", "sequence", "framework.version", "instances.types", "instances.region"
    }  # fmt: skip
    assert problems["framework.version"].endswith('write it in quotes: "2.5"')


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        ({"sequence": 0}, "sequence", "is 0; the least is 1"),
        ({"sequence": "4k"}, "sequence", "expected a whole number, got '4k'"),
        ({"deadline_h": -1}, "deadline_h", "is -1; it must be above 0"),
        ({"model": {"parameters": math.inf}}, "model.parameters",
         "expected a finite number, got inf"),
        ({"instances": {"spot": True, "spot_saving": 1}}, "instances.spot_saving",
         "is 1; it must be below 1"),
        ({"batch": 256}, "batch",
         "expected a mapping with the keys samples, tokens, up_to_samples, up_to_tokens, "
         "critical_samples, got 256"),
        ({"precision": "int4"}, "precision",
         "expected 'fp32', 'fp16', 'bf16' or 'fp8', got 'int4'"),
    ],
)  # fmt: skip
def test_wrong_values_are_told_with_what_would_do(
    change: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(ValidationError) as error:
        PlanRequest.model_validate(REQUEST | change)
    problems = {problem.path: problem.message for problem in problems_of(error.value)}
    assert problems == {path: message}


@given(st.floats(1, 1e7))
def test_a_batch_in_tokens_is_rounded_by_little(samples: float) -> None:
    batch = evened(samples)
    assert abs(batch - samples) <= max(0.5, 0.05 * samples) + 1e-9
    assert batch < 64 or batch % 4 == 0


@pytest.mark.parametrize(
    ("parameters", "name"), [(1e12, "1,000"), (70.6e9, "70.6"), (1.25e8, "0.125")]
)
def test_a_size_is_told_in_billions(parameters: float, name: str) -> None:
    shape = PlanRequest.model_validate(
        {"model": {"parameters": parameters}, "sequence": 2048}
        | {"batch": {"samples": 8}, "data": {"tokens": 1e9}}
    ).model.shape()
    assert shape.name == f"a model of {name} billion parameters"


@pytest.mark.parametrize(
    ("size", "number"), [("7B", "7e9"), ("1.5 b", "1.5e9"), ("350M", "350e6"), ("2T", "2e12")]
)
def test_a_size_with_a_letter_is_refused_with_its_number(size: str, number: str) -> None:
    with pytest.raises(ValidationError) as error:
        PlanRequest.model_validate(
            {"model": {"parameters": size}, "sequence": 2048}
            | {"batch": {"samples": 8}, "data": {"tokens": 1e9}}
        )
    [problem] = problems_of(error.value)
    assert problem.field == "model.parameters"
    assert problem.message == f"expected a number, got {size!r}; write {number}"
