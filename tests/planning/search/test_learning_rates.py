"""Advice on the learning rate, and batches past the critical one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestration.planning.model.shapes import ModelError
from orchestration.planning.search.answers.learning_rates import advice
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.objective import (
    FASTEST,
)
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Batch, KnownRate
from tests.planning.search.questions import chosen, task


@pytest.mark.parametrize(
    ("optimizer", "rule", "rate"), [("sgd", "linear", 0.4), ("adamw", "square root", 0.2)]
)
def test_the_rate_follows_the_batch(optimizer: str, rule: str, rate: float) -> None:
    rate_advice = advice(
        task(optimizer=optimizer, learning_rate=KnownRate(value=0.1, batch=64)), 256
    )
    assert rate_advice is not None
    assert rate_advice.rule == rule
    assert rate_advice.rate == pytest.approx(rate)


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
    plan = chosen(find_plans(task(batch=batch), where, FASTEST))
    assert (plan.configuration.global_batch > 1024) == (critical > 64)


def test_an_impossible_batch_is_refused() -> None:
    with pytest.raises(ModelError, match="range from 4 to 2"):
        Batch(least=4, most=2)
    with pytest.raises(ModelError, match="critical batch must be above 0, got -1"):
        Batch(least=4, most=8, critical=-1)
