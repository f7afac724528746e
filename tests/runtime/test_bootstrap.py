"""The paired bootstrap: SciPy's interval, and how often noise is promoted."""

from __future__ import annotations

import random

import pytest

from orchestration.runtime.verdict.bootstrap import BLOCKS, improvement

CONFIDENCE = 0.95


@pytest.mark.parametrize("count", [80, 3 * BLOCKS])
def test_the_interval_is_that_of_scipy(count: int) -> None:
    import numpy as np
    from scipy.stats import bootstrap  # type: ignore[import-untyped]  # it has none

    generator = random.Random(count)
    own = [generator.gauss(0.3, 1) for _ in range(count)]
    ours = improvement([own], 0, CONFIDENCE, "seed")
    theirs = bootstrap(
        (np.array(own),), np.mean, confidence_level=CONFIDENCE, method="basic", n_resamples=4000
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.mean == pytest.approx(float(np.mean(own)))
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.1 * width)


def promotions(trials: int, models: int, better: float = 0.0, *, count: int = 100) -> float:
    """Return the share of tournaments whose winner is promoted over the champion."""
    generator, promoted = random.Random(f"{models} {better}"), 0
    for trial in range(trials):
        champion = [generator.random() < 0.7 for _ in range(count)]
        every = [
            [float(generator.random() < 0.7 + better) - own for own in champion]
            for _ in range(models)
        ]
        best = max(range(models), key=lambda number: sum(every[number]))
        promoted += improvement(every, best, CONFIDENCE, str(trial), resamples=300).low > 0
    return promoted / trials


def test_noise_is_promoted_no_more_often_than_the_confidence_says() -> None:
    assert promotions(200, models=1) <= 1 - CONFIDENCE


def test_the_best_of_many_that_are_no_better_is_promoted_no_more_often() -> None:
    assert promotions(100, models=8) <= 1 - CONFIDENCE


def test_what_is_much_better_is_promoted() -> None:
    assert promotions(60, models=3, better=0.25) >= 0.9


def test_equal_seeds_give_equal_intervals() -> None:
    own = [[float(number % 3 - 1) for number in range(50)]]
    assert improvement(own, 0, CONFIDENCE, "a") == improvement(own, 0, CONFIDENCE, "a")
