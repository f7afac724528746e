"""Every cluster is chosen or rejected, with a reason."""

from __future__ import annotations

from orchestration.planning.search.answers.plans import Plans
from orchestration.planning.search.answers.rejections import rejected
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.space import Space
from tests.planning.search.questions import GPT2, LLAMA_7B, LLAMA_70B, chosen, space, task, whole


def reasons(answer: Plans) -> dict[str, str]:
    return {rejection.instance_type: rejection.reason for rejection in answer.rejected}


def test_every_allowed_cluster_is_chosen_or_rejected() -> None:
    answer = whole(LLAMA_7B)
    plan = chosen(answer)
    rejections = {
        (rejection.instance_type, rejection.instance_count) for rejection in answer.rejected
    }
    for instance in Space().allowed():
        for count in Space().counts_of(instance.name):
            if (instance.name, count) != (plan.instance_type, plan.instance_count):
                assert rejections & {(instance.name, count), (instance.name, None)}


def test_reasons_differ_by_instance_type() -> None:
    by_type = reasons(find_plans(task(), space()))
    assert by_type["ml.m5.xlarge"] == "unknown"
    assert by_type["ml.p3.16xlarge"] == "precision"
    assert by_type["ml.g5.xlarge"] in ("memory", "not the best", "run time")
    assert by_type["ml.trn2.48xlarge"] == "price"
    assert by_type["ml.g7e.48xlarge"] == "unknown"


def test_a_misfit_says_by_how_much() -> None:
    answer = find_plans(
        task(LLAMA_70B, 64), space("ml.g5.12xlarge", counts=(1,), offload=("none",))
    )
    misfit = next(rejection for rejection in answer.rejected if rejection.reason == "memory")
    assert misfit.figures["need_gib"] > misfit.figures["device_gib"]
    assert f"{misfit.figures['need_gib']:,.1f}" in misfit.detail


def test_a_batch_that_does_not_divide_is_a_reason() -> None:
    torch = frozenset({"torch_distributed"})
    answer = find_plans(task(GPT2, 3), space("ml.g5.48xlarge", counts=(2,), strategies=torch))
    assert answer.chosen is None
    details = [rejection.detail for rejection in answer.rejected if rejection.reason == "batch"]
    assert details == ["a batch of 3 can't be split evenly over 16 replicas"]


def test_a_run_longer_than_a_job_may_last_is_rejected() -> None:
    long = task(LLAMA_7B, samples=100_000_000)
    answer = find_plans(long, space("ml.g5.12xlarge", counts=(1,)))
    assert answer.chosen is None
    assert {rejection.reason for rejection in answer.rejected} == {"run time"}


def test_quotas_hold() -> None:
    answer = find_plans(task(), space("ml.p4d.24xlarge", counts=(1, 2, 4), quotas={"ml.p4d.*": 3}))
    counts = {plan.instance_count for plan in answer.scaling}
    assert counts <= {1, 2, 3}


def test_strategies_that_are_not_allowed_are_not_taken() -> None:
    where = space("ml.p4d.24xlarge", counts=(2,), strategies=frozenset({"smddp"}))
    assert chosen(find_plans(task(), where)).strategy.kind == "smddp"


def test_instance_types_with_one_reason_are_grouped() -> None:
    answer = find_plans(task(), Space())
    groups = [group.what for group in rejected(answer) if group.reason == "unknown"]
    assert len(groups) < 10
    assert any("ml.m5.*" in what for what in groups)


def test_rejections_on_the_chosen_instances_come_first() -> None:
    where = Space(types=("ml.p4d.24xlarge", "ml.g5.12xlarge"), counts=(1,))
    first = rejected(find_plans(task(), where))[0]
    assert first.what.endswith("on the chosen instances")
    assert first.reason == "memory"
