"""Time and cost of what a job does beside its steps."""

from __future__ import annotations

import pytest

from orchestration.planning.search.answers.besides import Besides, checkpoint_bytes
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.objective import FASTEST, by_deadline
from orchestration.planning.search.request import PlanRequest
from orchestration.planning.search.task import Batch, Checkpoints, Lora
from orchestration.planning.telling.screen import screen
from tests.planning.search.questions import GPT2, LLAMA_7B, chosen, plans, space, task
from tests.planning.search.test_request import REQUEST

OFTEN = Checkpoints(every_steps=100, gb_per_s=2)


def test_a_request_says_how_often_how_fast_and_how_long_a_start_takes() -> None:
    besides = {"checkpoints": {"every_steps": 100, "gb_per_s": 2}, "startup_min": 5}
    wanted = PlanRequest.model_validate(REQUEST | besides).task()
    assert (wanted.checkpoints, wanted.startup_s) == (OFTEN, 300)


def test_start_and_checkpoints_are_paid_for() -> None:
    usual, more = plans(), plans(checkpoints=OFTEN, startup_s=300.0)
    before, after = chosen(usual), chosen(more)
    each = (2 + 12) * LLAMA_7B.parameters / 2e9
    assert after.steps == before.steps == 391
    assert after.besides == Besides(300, 3, after.besides.checkpoints_s)
    assert after.besides.checkpoints_s == pytest.approx(3 * each)
    added = 300 + 3 * each
    assert after.time_s.expected == pytest.approx(before.time_s.expected + added)
    assert before.cost_usd is not None
    assert after.cost_usd is not None
    rate = before.cost_usd.expected / before.time_s.expected
    assert after.cost_usd.expected == pytest.approx(before.cost_usd.expected + rate * added)
    assert after.data()["besides"] == {
        "startup_s": 300, "checkpoints": 3, "checkpoints_s": pytest.approx(3 * each)
    }  # fmt: skip
    [time] = [line for line in screen(more, "train") if line.startswith("time")]
    assert time.endswith(", 5 min to start, 3 checkpoints of 47 s")
    assert any("a warm pool" in line for line in screen(more, "train"))


def test_nothing_beside_the_steps_is_not_told() -> None:
    text = "\n".join(screen(plans(), "train"))
    assert "to start" not in text
    assert "checkpoint" not in text


def test_a_checkpoint_of_adapters_is_small() -> None:
    adapters = task(lora=Lora(rank=16))
    assert checkpoint_bytes(adapters) < checkpoint_bytes(task()) / 100


def test_a_deadline_counts_the_start() -> None:
    where = space("ml.p4d.24xlarge", counts=(1,))
    high = chosen(find_plans(task(), where, FASTEST)).time_s.high
    in_time = by_deadline(high + 60)
    assert find_plans(task(), where, in_time).chosen is not None
    assert find_plans(task(startup_s=120.0), where, in_time).chosen is None


def test_the_search_chooses_a_batch_with_its_checkpoints() -> None:
    """Slow checkpoints every few steps: the larger the batch, the fewer there are."""
    slow = Checkpoints(every_steps=10, gb_per_s=0.01)
    where = space("ml.g5.12xlarge", counts=(1,))
    sizes = Batch(least=64, most=256)
    best = chosen(find_plans(task(GPT2, sizes, checkpoints=slow), where, FASTEST))
    times = [
        chosen(find_plans(task(GPT2, size, checkpoints=slow), where, FASTEST)).time_s.expected
        for size in sizes.sizes
    ]
    assert best.time_s.expected == pytest.approx(min(times))
    assert best.configuration.global_batch == 256
