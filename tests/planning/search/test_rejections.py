"""Every cluster is chosen or rejected, with a reason."""

from __future__ import annotations

from orchestration.planning.search.find import find_plans
from orchestration.planning.search.plans import Plans
from orchestration.planning.search.rejections import rejected
from orchestration.planning.search.space import Space
from tests.planning.search.questions import GPT2, LLAMA_7B, LLAMA_70B, chosen, space, task, whole


def reasons(answer: Plans) -> dict[str, str]:
    return {one.instance_type: one.reason for one in answer.rejected}


def test_every_allowed_cluster_is_chosen_or_rejected() -> None:
    answer = whole(LLAMA_7B)
    plan = chosen(answer)
    told = {(one.instance_type, one.instance_count) for one in answer.rejected}
    for one in Space().allowed():
        for count in Space().counts_of(one.name):
            if (one.name, count) != (plan.instance_type, plan.instance_count):
                assert (one.name, count) in told or (one.name, None) in told


def test_reasons_are_told() -> None:
    found = reasons(find_plans(task(), space()))
    assert found["ml.m5.xlarge"] == "unknown"
    assert found["ml.p3.16xlarge"] == "precision"
    assert found["ml.g5.xlarge"] in ("memory", "not the best", "run time")
    assert found["ml.trn2.48xlarge"] == "price"
    assert found["ml.g7e.48xlarge"] == "unknown"


def test_a_misfit_says_by_how_much() -> None:
    answer = find_plans(
        task(LLAMA_70B, 64), space("ml.g5.12xlarge", counts=(1,), offload=("none",))
    )
    misfit = next(one for one in answer.rejected if one.reason == "memory")
    assert misfit.figures["need_gib"] > misfit.figures["device_gib"]
    assert f"{misfit.figures['need_gib']:,.1f}" in misfit.detail


def test_a_batch_that_does_not_divide_is_told() -> None:
    torch = frozenset({"torch_distributed"})
    answer = find_plans(task(GPT2, 3), space("ml.g5.48xlarge", counts=(2,), strategies=torch))
    assert answer.chosen is None
    told = [one.detail for one in answer.rejected if one.reason == "batch"]
    assert told == ["a batch of 3 can't be split evenly over 16 replicas"]


def test_a_run_longer_than_a_job_may_last_is_rejected() -> None:
    long = task(LLAMA_7B, samples=100_000_000)
    answer = find_plans(long, space("ml.g5.12xlarge", counts=(1,)))
    assert answer.chosen is None
    assert {one.reason for one in answer.rejected} == {"run time"}


def test_quotas_hold() -> None:
    answer = find_plans(task(), space("ml.p4d.24xlarge", counts=(1, 2, 4), quotas={"ml.p4d.*": 3}))
    counts = {plan.instance_count for plan in answer.scaling}
    assert counts <= {1, 2, 3}


def test_strategies_that_are_not_allowed_are_not_taken() -> None:
    where = space("ml.p4d.24xlarge", counts=(2,), strategies=frozenset({"smddp"}))
    assert chosen(find_plans(task(), where)).strategy.kind == "smddp"


def test_rejections_are_told_once() -> None:
    answer = find_plans(task(), Space())
    told = [one.what for one in rejected(answer) if one.reason == "unknown"]
    assert len(told) < 10
    assert any("ml.m5.*" in what for what in told)


def test_rejections_on_the_chosen_instances_come_first() -> None:
    where = Space(types=("ml.p4d.24xlarge", "ml.g5.12xlarge"), counts=(1,))
    first = rejected(find_plans(task(), where))[0]
    assert first.what.endswith("on the chosen instances")
    assert first.reason == "memory"
