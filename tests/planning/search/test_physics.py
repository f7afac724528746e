"""Answers obey physics, prices and AWS's guidance, though no rule of the search says so."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestration.catalog import Instance, Price, instances, prices
from orchestration.planning.model.shapes import ModelShape
from orchestration.planning.model.typical_shapes import of_size
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.objective import (
    FASTEST,
    Objective,
    by_deadline,
)
from tests.planning.search.questions import GPT2, LLAMA_7B, LLAMA_70B, chosen, space, task, whole


@pytest.mark.parametrize("model", [GPT2, LLAMA_7B, LLAMA_70B], ids=["gpt2", "7b", "70b"])
def test_nothing_uses_more_than_the_devices_have(model: ModelShape) -> None:
    answer = whole(model)
    for plan in (*answer.front, *answer.alternatives, *answer.scaling):
        assert 0 < (plan.mfu or 0) < 1
        assert plan.prediction.fits
        assert plan.headroom_gib > 0


def larger_memory(factor: float) -> dict[str, Instance]:
    return {
        name: replace(instance, device_memory_gib=(instance.device_memory_gib or 0) * factor)
        for name, instance in instances().items()
        if instance.devices
    }


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    name=st.sampled_from(["ml.g5.xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge"]),
    size=st.floats(1e8, 3e10),
    factor=st.floats(1, 4),
)
def test_more_memory_never_hurts(name: str, size: float, factor: float) -> None:
    wanted = task(of_size(size))
    before = find_plans(wanted, space(name, counts=(1, 2)), FASTEST).chosen
    after = find_plans(
        wanted, space(name, counts=(1, 2), catalog=larger_memory(factor)), FASTEST
    ).chosen
    if before is not None:
        assert after is not None
        # What need not offload any more is taken within the interval of what did, and what is
        # simpler within 2 %.
        is_offloaded = before.configuration.offload != "none"
        longest = before.time_s.high if is_offloaded else 1.02 * before.time_s.expected
        assert after.time_s.expected <= longest


def cost_at(known: dict[str, Price]) -> float:
    where = space("ml.g5.12xlarge", "ml.p4d.24xlarge", "ml.p5.48xlarge", prices=known)
    answer = find_plans(task(), where)
    plan = answer.passed_over or chosen(answer)  # a surer plan may be preferred to the best
    assert plan.cost_usd is not None
    return plan.cost_usd.expected


@cache
def usual_cost() -> float:
    return cost_at(dict(prices()))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    name=st.sampled_from(["ml.g5.12xlarge", "ml.p4d.24xlarge", "ml.p5.48xlarge"]),
    share=st.floats(0.1, 1),
)
def test_a_lower_price_never_raises_the_cost(name: str, share: float) -> None:
    usual = dict(prices())
    cheaper = replace(usual[name], usd_per_hour=usual[name].usd_per_hour * share)
    assert cost_at(usual | {name: cheaper}) <= usual_cost()


@pytest.mark.parametrize("hours", [1, 3, 10, 100])
def test_more_time_never_costs_more(hours: float) -> None:
    def cost(objective: Objective) -> float:
        plan = find_plans(task(), space(), objective).chosen
        return float("inf") if plan is None or plan.cost_usd is None else plan.cost_usd.expected

    assert cost(by_deadline(hours * 3600 * 2)) <= cost(by_deadline(hours * 3600))


def test_more_choice_never_hurts() -> None:
    few = find_plans(task(), space("ml.p4d.24xlarge", counts=(1, 2))).chosen
    many = find_plans(task(), space("ml.p4d.24xlarge", "ml.g5.48xlarge", counts=(1, 2, 4))).chosen
    assert few is not None
    assert many is not None
    assert few.cost_usd is not None
    assert many.cost_usd is not None
    assert many.cost_usd.expected <= few.cost_usd.expected


def test_a_small_model_trains_data_parallel() -> None:
    plan = chosen(find_plans(task(GPT2, 512), space("ml.g5.12xlarge", counts=(1,))))
    assert plan.configuration.tensor == plan.configuration.pipeline == 1
    assert plan.configuration.zero < 3


def test_a_model_that_does_not_fit_one_device_is_sharded() -> None:
    plan = chosen(find_plans(task(LLAMA_7B), space("ml.p4d.24xlarge", counts=(1, 2))))
    assert plan.configuration.zero or plan.layout.replica > 1


def test_one_larger_instance_beats_several_small_ones() -> None:
    where = space("ml.g5.2xlarge", "ml.g5.48xlarge", counts=(1, 2, 4, 8))
    plan = chosen(find_plans(task(LLAMA_7B), where, FASTEST))
    assert plan.instance_type == "ml.g5.48xlarge"


def test_many_nodes_want_a_fast_network() -> None:
    known = dict(instances())
    slow = replace(known["ml.p4d.24xlarge"], name="ml.slow.24xlarge", network_gbps=25.0)
    catalog = {"ml.p4d.24xlarge": known["ml.p4d.24xlarge"], slow.name: slow}
    price = prices()["ml.p4d.24xlarge"]
    both = {name: replace(price, instance_type=name) for name in catalog}
    where = space("ml.*", counts=(8,), catalog=catalog, prices=both)
    assert chosen(find_plans(task(LLAMA_7B, 512), where)).instance_type == "ml.p4d.24xlarge"


@pytest.mark.parametrize("host_gib", [4.0, 4096.0])
def test_offloading_needs_room_on_the_host(host_gib: float) -> None:
    instance = replace(instances()["ml.g5.12xlarge"], host_memory_gib=host_gib)
    where = space(instance.name, counts=(1,), catalog={instance.name: instance}, longest_run_s=1e12)
    plan = find_plans(task(of_size(13e9)), where).chosen
    assert (plan is not None) == (host_gib > 1000)
    if plan is not None:
        assert plan.configuration.offload != "none"
