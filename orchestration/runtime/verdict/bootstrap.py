"""A paired bootstrap: how sure it is that the best of several models beats another one.

Every resample draws examples with replacement, the same ones for all models. Of several models the
best one looks better than it is: so the interval is that of the largest deviation among all of
them, as in White's reality check (https://doi.org/10.1111/1468-0262.00152), and a tournament
promotes noise no more often than a single comparison. Of few examples the spread itself is
uncertain: the interval is wider by Student's t over the normal distribution's quantile.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from statistics import NormalDist
from typing import Sequence

FEWEST = 7
"""Examples below which the interval's promise does not hold: of six that are right or wrong, three
that happen to be better and none worse would be enough."""

RESAMPLES = 2000
BLOCKS = 1000
"""More examples than this are drawn in so many random groups, whose means vary as examples do."""

SEED = "orchestration"
"""The same for all, so that whoever decides again on the same data decides the same."""


@dataclass(frozen=True)
class Interval:
    """The improvement of one model over the other, with its interval."""

    mean: float
    low: float
    high: float
    examples: int


def improvement(
    differences: Sequence[Sequence[float]],
    best: int,
    confidence: float,
    seed: str = SEED,
    resamples: int = RESAMPLES,
) -> Interval:
    """Return the improvement of the model `best`; there is a list of differences for each model.

    Each has :data:`FEWEST` differences or more, one for each example. Half of what `confidence`
    leaves to chance lies at each end of the interval.
    """
    count = len(differences[0])
    generator = random.Random(seed)  # noqa: S311 - a simulation, and the same in every attempt
    groups = _groups(count, generator)
    sizes = [len(group) for group in groups]
    sums = [[math.fsum(own[i] for i in group) for group in groups] for own in differences]
    means = [math.fsum(own) / count for own in differences]
    tail = (1 - confidence) / 2
    # A resample varies a little less than a sample does.
    scale = math.sqrt(len(groups) / (len(groups) - 1)) * _widened(1 - tail, len(groups) - 1)
    highest: list[float] = []
    lowest: list[float] = []
    numbers = range(len(groups))
    for _ in range(resamples):
        drawn = generator.choices(numbers, k=len(groups))
        size = sum(map(sizes.__getitem__, drawn))
        deviations = [
            scale * (sum(map(own.__getitem__, drawn)) / size - mean)
            for own, mean in zip(sums, means)
        ]
        highest.append(max(deviations))
        lowest.append(deviations[best])
    return Interval(
        means[best],
        means[best] - _quantile(highest, 1 - tail),
        means[best] - _quantile(lowest, tail),
        count,
    )


def _widened(share: float, freedom: int) -> float:
    """Return the quantile of Student's t at so many degrees of freedom over the normal one.

    By its expansion in 1/freedom, whose error is below 1 % from four degrees of freedom on
    (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5).
    """
    z = NormalDist().inv_cdf(share)
    terms = (
        1.0,
        (z**2 + 1) / 4,
        (5 * z**4 + 16 * z**2 + 3) / 96,
        (3 * z**6 + 19 * z**4 + 17 * z**2 - 15) / 384,
        (79 * z**8 + 776 * z**6 + 1482 * z**4 - 1920 * z**2 - 945) / 92160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))


def _groups(count: int, generator: random.Random) -> list[list[int]]:
    order = list(range(count))
    if count > BLOCKS:
        generator.shuffle(order)
    most = min(count, BLOCKS)
    return [order[start::most] for start in range(most)]


def _quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least such a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]
