"""Errors of predictions, estimated from the errors of others that share something with them.

A prediction's error (of its logarithm) is taken as a sum of independent parts, each shared by
everything with the same key: the training's own part, that of an accelerator, of a layout and so
on. Of a part, two predictions share as much as the surer one has of it: what makes one less sure
than the other is its own. With Gaussian parts that is kriging, of which the parts are the
covariance: https://en.wikipedia.org/wiki/Gaussian_process_regression
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import sqrt

Shared = Sequence[Hashable]
"""Keys of one prediction, in the order of the parts' weights."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A measured error of a logarithm."""

    keys: tuple[Hashable, ...]
    error: float
    deviation: float
    """Standard deviation of the prediction's error, before anything was measured."""
    noise: float
    """Standard deviation of the measurement."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An expected error of a logarithm."""

    error: float
    deviation: float


class Errors:
    """Estimates of errors, given some that were observed."""

    def __init__(self, weights: Sequence[float], observations: Sequence[Observation]) -> None:
        """Keep the observations; `weights`: each part's share of the variance, 1 in sum."""
        self._weights = weights
        self._observations = observations
        errors = [each.error for each in observations]
        self._factor = self._factored(1.0)
        self._solved = _solved(self._factor, errors)
        # Predictions that were further off than they claimed leave more doubt about the others,
        # but none about themselves: measurements are as exact as before.
        surprise = sum(a * b for a, b in zip(errors, self._solved, strict=True))
        self._inflation = max(1.0, surprise / max(1, len(observations)))
        if self._inflation > 1:
            self._factor = self._factored(self._inflation)
            self._solved = _solved(self._factor, errors)
        self._sums: dict[float, list[dict[Hashable, float]]] = {}

    def _factored(self, inflation: float) -> list[list[float]]:
        """Return the factor of the observations' covariances, over `inflation`."""
        return _cholesky([
            [
                self._covariance(a, b.keys, b.deviation)
                + (a.noise**2 / inflation if a is b else 0.0)
                for b in self._observations
            ]
            for a in self._observations
        ])  # fmt: skip

    def error(self, keys: Shared, deviation: float) -> float:
        """Return the expected error of a prediction."""
        parts = self._parts(deviation)
        return sum(sums.get(key, 0.0) for sums, key in zip(parts, keys, strict=True))

    def least(self) -> float:
        """Return a lower bound on the expected error of every prediction."""
        # Between the deviations that were observed, an expected error is linear in the variance.
        every = [self._parts(d) for d in {each.deviation for each in self._observations}]
        return sum(
            min((min(0.0, *parts[i].values()) for parts in every), default=0.0)
            for i in range(len(self._weights))
        )

    def estimate(self, keys: Shared, deviation: float) -> Estimate:
        """Return the expected error of a prediction and how sure it is."""
        near = [self._covariance(each, keys, deviation) for each in self._observations]
        known = sum(a * b for a, b in zip(near, _solved(self._factor, near), strict=True))
        variance = max(0.0, deviation**2 - known) * self._inflation
        return Estimate(self.error(keys, deviation), sqrt(variance))

    def _parts(self, deviation: float) -> list[dict[Hashable, float]]:
        """Return the expected errors of predictions with a deviation: of each part, by its key."""
        if deviation not in self._sums:
            parts: list[dict[Hashable, float]] = [{} for _ in self._weights]
            for each, amount in zip(self._observations, self._solved, strict=True):
                shared = min(deviation, each.deviation) ** 2 * amount
                for sums, key, weight in zip(parts, each.keys, self._weights, strict=True):
                    sums[key] = sums.get(key, 0.0) + weight * shared
            self._sums[deviation] = parts
        return self._sums[deviation]

    def _covariance(self, known: Observation, keys: Shared, deviation: float) -> float:
        same = zip(self._weights, known.keys, keys, strict=True)
        return min(known.deviation, deviation) ** 2 * sum(w for w, a, b in same if a == b)


def _cholesky(matrix: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the lower triangle whose product with its transpose is the matrix."""
    lower: list[list[float]] = []
    for i, row in enumerate(matrix):
        lower.append([])
        for j in range(i + 1):
            rest = row[j] - sum(a * b for a, b in zip(lower[i], lower[j], strict=False))
            lower[i].append(sqrt(rest) if i == j else rest / lower[j][j])
    return lower


def _solved(lower: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Return the solution for the matrix that `lower` is the factor of."""
    forward: list[float] = []
    for row, value in zip(lower, right, strict=True):
        done = sum(a * b for a, b in zip(row, forward, strict=False))
        forward.append((value - done) / row[-1])
    size = len(lower)
    solution = [0.0] * size
    for i in reversed(range(size)):
        after = sum(lower[j][i] * solution[j] for j in range(i + 1, size))
        solution[i] = (forward[i] - after) / lower[i][i]
    return solution
