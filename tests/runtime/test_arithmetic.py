"""Batches and learning rates keep their laws."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestration.runtime import (
    Schedule,
    accumulation,
    cluster_size,
    global_batch,
    iterations_per_epoch,
    scaled_by_root,
    scaled_linearly,
)

counts = st.integers(1, 10_000)
rates = st.floats(1e-6, 10.0)


@given(counts, counts, counts)
def test_accumulation_undoes_global_batch(replicas: int, per_replica: int, times: int) -> None:
    batch = global_batch(replicas, per_replica, times)
    assert accumulation(batch, replicas, per_replica) == times


@given(counts, counts, counts)
def test_a_batch_is_had_exactly_or_not_at_all(batch: int, replicas: int, per_replica: int) -> None:
    try:
        times = accumulation(batch, replicas, per_replica)
    except ValueError:
        assert batch % (replicas * per_replica)
    else:
        assert global_batch(replicas, per_replica, times) == batch


@given(st.integers(1, 10**7), counts)
def test_an_epoch_sees_each_sample_once(samples: int, batch: int) -> None:
    steps = iterations_per_epoch(samples, batch, drop_last=False)
    assert (steps - 1) * batch < samples <= steps * batch
    if samples >= batch:
        whole = iterations_per_epoch(samples, batch, drop_last=True)
        assert whole == steps - bool(samples % batch)


def test_numbers_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="instances=0, devices_per_instance=-1"):
        cluster_size(0, -1)
    with pytest.raises(ValueError, match="no step"):
        iterations_per_epoch(10, 32, drop_last=True)
    with pytest.raises(ValueError, match="rate=0"):
        scaled_linearly(0, 256, 512)
    with pytest.raises(ValueError, match="batch=inf"):
        scaled_by_root(0.1, math.inf, 512)


def test_goyal_trains_imagenet_in_an_hour() -> None:
    """The numbers of arXiv 1706.02677: 32 servers of 8 GPUs, 32 images each."""
    batch = global_batch(cluster_size(32, 8), 32)
    steps = iterations_per_epoch(1_281_167, batch, drop_last=True)
    rate = Schedule(
        peak=scaled_linearly(0.1, 256, batch),
        start=0.1,
        warmup_steps=5 * steps,
        total_steps=90 * steps,
        decay="stepwise",
        milestones=(30 * steps, 60 * steps, 80 * steps),
    )
    assert batch == 8192
    epochs = [round(rate(epoch * steps), 6) for epoch in (5, 29, 30, 60, 80)]
    assert epochs == [3.2, 3.2, 0.32, 0.032, 0.0032]
    assert 0.1 < rate(0) < rate(steps) < rate(4 * steps) < 3.2


@given(rates, counts, counts, counts)
def test_scaling_in_two_steps_is_scaling_once(rate: float, a: int, b: int, c: int) -> None:
    for scaled in (scaled_linearly, scaled_by_root):
        assert scaled(scaled(rate, a, b), b, c) == pytest.approx(scaled(rate, a, c))
        assert scaled(scaled(rate, a, b), b, a) == pytest.approx(rate)


@given(rates, counts, counts)
def test_the_best_rate_for_adam_is_greatest_at_the_critical_batch(
    rate: float, batch: int, critical: int
) -> None:
    greatest = scaled_by_root(rate, batch, critical, critical_batch=critical)
    for factor in (0.25, 0.5, 2, 4):
        assert scaled_by_root(rate, batch, critical * factor, critical_batch=critical) < greatest
    # As far above it as below: the same.
    above = scaled_by_root(rate, batch, critical * 4, critical_batch=critical)
    below = scaled_by_root(rate, batch, critical / 4, critical_batch=critical)
    assert above == pytest.approx(below)


@given(rates, counts, counts)
def test_far_below_the_critical_batch_only_the_root_is_left(rate: float, a: int, b: int) -> None:
    far = scaled_by_root(rate, a, b, critical_batch=1e15)
    assert far == pytest.approx(scaled_by_root(rate, a, b), rel=1e-3)


@given(
    peak=rates,
    start=st.floats(0, 20),
    share=st.floats(0, 1),
    total_steps=st.integers(1, 300),
    warmup=st.floats(0, 1),
    decay=st.sampled_from(("constant", "linear", "cosine")),
)
def test_schedule_goes_up_then_down_within_its_bounds(
    peak: float, start: float, share: float, total_steps: int, warmup: float, decay: str
) -> None:
    steps = int(warmup * total_steps)
    rate = Schedule(peak, total_steps, steps, start=start, floor=share * peak, decay=decay)
    values = [rate(step) for step in range(total_steps + 3)]
    slack = 1e-9 * peak
    assert all(a <= b + slack for a, b in pairwise(values[:steps]))
    assert all(a >= b - slack for a, b in pairwise(values[steps:]))
    assert max(values) <= peak + slack
    assert min(values) >= min(rate.floor, start) - slack
    if steps:
        assert values[steps - 1] == pytest.approx(peak)
    if decay != "constant":
        assert values[-1] == values[-2] == pytest.approx(rate.floor)
    assert rate.relative(0) == pytest.approx(values[0] / peak)


def test_a_cosine_is_halfway_down_in_the_middle() -> None:
    rate = Schedule(peak=1.0, total_steps=100, floor=0.5, decay="cosine")
    assert rate(50) == pytest.approx(0.75)


def test_schedule_says_all_that_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"decay.*warmup_steps=5.*floor=2.0.*increase.*belong"):
        Schedule(1.0, 3, 5, floor=2.0, decay="cosin", milestones=(2, 1))
    with pytest.raises(ValueError, match="less than 0"):
        Schedule(1.0, 3)(-1)


@given(st.integers(0, 50), st.integers(0, 50))
def test_a_resumed_run_has_the_same_rates(first: int, second: int) -> None:
    assume(first <= second)
    rate = Schedule(peak=0.1, total_steps=50, warmup_steps=5, decay="cosine")
    again = Schedule(peak=0.1, total_steps=50, warmup_steps=5, decay="cosine")
    assert [rate(step) for step in range(first, second)] == [again(step) for step in range(second)][
        first:
    ]
