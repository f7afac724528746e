"""The paired bootstrap: SciPy's interval, and how often noise is promoted."""

from __future__ import annotations

import math
import random

import pytest

from orchestration.runtime.verdict.bootstrap import BLOCKS, FEWEST, _widened, improvement

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


@pytest.mark.parametrize("count", [FEWEST, 10])
@pytest.mark.parametrize("skewed", [False, True])
def test_noise_is_promoted_no_more_often_where_examples_are_few(count: int, skewed: bool) -> None:
    generator, trials = random.Random(f"{count} {skewed}"), 400

    def draw() -> float:
        return -generator.expovariate(1) if skewed else generator.gauss(0, 1)

    promoted = 0
    for trial in range(trials):
        differences = [draw() - draw() for _ in range(count)]
        promoted += improvement([differences], 0, CONFIDENCE, str(trial), resamples=300).low > 0
    assert promoted / trials <= 1 - CONFIDENCE


@pytest.mark.parametrize("confidence", [0.8, CONFIDENCE, 0.99])
@pytest.mark.parametrize("count", [FEWEST, FEWEST + 1])
def test_noise_in_few_answers_that_are_right_or_wrong_keeps_to_the_level(
    count: int, confidence: float
) -> None:
    """Exact: every outcome of so many examples, by its probability."""
    promoted = [
        (better, worse)
        for better in range(1, count + 1)
        for worse in range(min(better, count - better + 1))
        if improvement(
            [[1.0] * better + [-1.0] * worse + [0.0] * (count - better - worse)], 0, confidence
        ).low
        > 0
    ]
    assert (count, 0) in promoted
    for right in (0.5, 0.6, 0.7, 0.8, 0.9):
        one = right * (1 - right)  # one of the two models is right, the other is not
        share = sum(
            math.comb(count, better)
            * math.comb(count - better, worse)
            * one ** (better + worse)
            * (1 - 2 * one) ** (count - better - worse)
            for better, worse in promoted
        )
        # At 99 %, 1.06 % of the comparisons of eight examples.
        assert share <= (1 - confidence) * (1.1 if confidence > CONFIDENCE else 1.0)


def test_few_examples_widen_the_interval_by_student_t() -> None:
    from scipy.stats import norm, t

    for share in (0.9, 0.975, 0.995):
        for freedom in (FEWEST - 1, 9, 200):
            ratio = float(t.ppf(share, freedom) / norm.ppf(share))
            assert _widened(share, freedom) == pytest.approx(ratio, rel=0.01)


def test_what_is_much_better_is_promoted() -> None:
    assert promotions(60, models=3, better=0.25) >= 0.9


def test_equal_seeds_give_equal_intervals() -> None:
    own = [[float(number % 3 - 1) for number in range(50)]]
    assert improvement(own, 0, CONFIDENCE, "a") == improvement(own, 0, CONFIDENCE, "a")
