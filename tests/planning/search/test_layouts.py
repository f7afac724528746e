"""Layouts, and the strategies that start them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestration.catalog import instances
from orchestration.planning.model.configuration import Precision
from orchestration.planning.model.shapes import ModelShape
from orchestration.planning.model.typical_shapes import transformer
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.layouts import Layout, layouts, strategies
from orchestration.planning.search.space import Space
from orchestration.planning.search.strategy_choice import StrategyChoices
from orchestration.planning.search.task import Framework
from orchestration.strategies import Use, findings
from tests.planning.search.questions import GPT2, LLAMA_7B, LLAMA_70B, chosen, space, task, whole


def kinds(model: ModelShape, name: str, count: int, precision: Precision = "bf16") -> set[str]:
    wanted = task(model, precision=precision)
    return {str(layout) for layout in layouts(wanted, instances()[name], count)}


def test_every_degree_is_laid_out() -> None:
    expected = {
        "data parallel", "ZeRO-1 over 16", "ZeRO-2 over 16", "FSDP over 16", "FSDP over 8",
        "SMP v2, FSDP over 2, tensor 8", "SMP v2, FSDP over 16, context 4",
        "SMP v2, FSDP over 4, tensor 2, context 4",
    }  # fmt: skip
    assert expected <= kinds(LLAMA_7B, "ml.p4d.24xlarge", 2)


def test_pipelines_are_for_fp16_and_fp32() -> None:
    half = kinds(LLAMA_7B, "ml.p3.16xlarge", 2, precision="fp16")
    assert {"SMP v1, pipeline 2", "SMP v1, ZeRO-1, tensor 4, pipeline 4"} <= half
    brain = kinds(LLAMA_7B, "ml.p4d.24xlarge", 2, precision="bf16")
    assert not any("pipeline" in layout for layout in brain)


def test_experts_are_spread() -> None:
    mixture = replace(LLAMA_7B, experts=8, active_experts=2)
    assert "SMP v2, FSDP over 8, expert 8" in kinds(mixture, "ml.p4d.24xlarge", 2)
    assert not any("expert" in layout for layout in kinds(LLAMA_7B, "ml.p4d.24xlarge", 2))


def test_heads_bound_tensor_parallelism() -> None:
    odd = transformer(layers=4, hidden=640, heads=10, vocabulary=32000)
    names = kinds(odd, "ml.p4d.24xlarge", 1)
    assert any("tensor 2" in layout for layout in names)
    assert not any("tensor 4" in layout for layout in names)


@pytest.mark.parametrize(
    "layout", list(layouts(task(), instances()["ml.p4d.24xlarge"], 2)), ids=str
)
def test_degrees_are_those_of_the_strategy(layout: Layout) -> None:
    from orchestration.strategies import model_parallel, world

    for strategy in strategies(layout, "pytorch"):
        assert world(strategy, 2, 8) == 16
        if strategy.kind != "none":
            assert model_parallel(strategy) == layout.replica


@pytest.mark.parametrize("name", ["ml.p4d.24xlarge", "ml.p3.16xlarge", "ml.trn1.32xlarge"])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("count", [1, 4])
def test_no_layout_has_degrees_that_validation_refuses(
    name: str, precision: Precision, count: int
) -> None:
    wanted = task(replace(LLAMA_7B, experts=8, active_experts=2), precision=precision)
    choices = StrategyChoices(wanted, Space())
    for layout in layouts(wanted, instances()[name], count):
        exact = choices.exact(layout, name, count)
        assert exact.strategy is not None
        similar = choices.similar(layout, name, count)
        assert (exact.strategy.kind, exact.certain) == (
            similar.strategy and similar.strategy.kind, similar.certain
        )  # fmt: skip


def test_what_is_chosen_is_valid() -> None:
    answer = whole(LLAMA_70B)
    for plan in (*answer.front, *answer.alternatives):
        use = Use(
            framework="pytorch", instance_types=(plan.instance_type,),
            instance_count=plan.instance_count, has_source=True,
        )  # fmt: skip
        assert findings(plan.strategy, use) == []


def test_trainium_takes_torchrun() -> None:
    plan = chosen(find_plans(task(), space("ml.trn1.32xlarge")))
    assert plan.layout.family == "neuron"
    assert plan.strategy.kind == "torch_distributed"
    assert plan.configuration.machine.devices_per_node == 32


@pytest.mark.parametrize(
    ("framework", "kinds"),
    [
        ("tensorflow", {"multi_worker_mirrored", "horovod"}),
        ("mxnet", {"horovod", "parameter_server"}),
    ],
)
def test_other_frameworks_have_their_strategies(framework: str, kinds: set[str]) -> None:
    wanted = task(GPT2, framework=Framework(name=framework))
    assert chosen(find_plans(wanted, space("ml.p4d.24xlarge", counts=(2,)))).strategy.kind in kinds


def test_parameter_servers_use_one_device_of_each_instance() -> None:
    wanted = task(GPT2, framework=Framework(name="mxnet"))
    where = space("ml.g5.xlarge", counts=(2,), strategies=frozenset({"parameter_server"}))
    plan = chosen(find_plans(wanted, where))
    assert plan.layout.family == "servers"
    assert plan.configuration.machine.devices == 2


def test_a_version_newer_than_the_sources_is_a_warning() -> None:
    wanted = task(framework=Framework(version="2.14.0"))
    plan = chosen(find_plans(wanted, space("ml.p4d.24xlarge", counts=(1,))))
    assert plan.configuration.data > 1
    assert any("2.14.0" in text for text in plan.warnings)


def test_doubtful_strategies_are_taken_on_demand() -> None:
    only = frozenset({"smp_v2"})
    usual = find_plans(task(), space("ml.g5.48xlarge", "ml.p4d.24xlarge", strategies=only))
    assert chosen(usual).instance_type == "ml.p4d.24xlarge"
    assert not chosen(usual).warnings
    rejections = [
        rejection for rejection in usual.rejected if rejection.instance_type == "ml.g5.48xlarge"
    ]
    assert {rejection.reason for rejection in rejections} == {"support"}
    bold = find_plans(task(), space("ml.g5.48xlarge", strategies=only, unverified=True))
    assert any("ml.g5.48xlarge" in text for text in chosen(bold).warnings)
