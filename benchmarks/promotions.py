"""Simulate tournaments between models that are no better, and count how often noise is promoted."""

import math
import random
from multiprocessing import Pool

from orchestration.runtime.verdict.bootstrap import improvement

CONFIDENCE = 0.95
EXAMPLES = 100
RIGHT = 0.7
"""The probability that any model, the champion among them, is right about an example."""
TRIALS = {1: 4000, 8: 2000, 30: 1000}
"""The trials of tournaments of so many challengers."""


def tournament(given: tuple[int, int]) -> tuple[bool, bool]:
    """Return whether the best is promoted, and whether its own interval alone would promote it."""
    models, trial = given
    generator = random.Random(f"{models} {trial}")  # noqa: S311 - a simulation
    champion = [generator.random() < RIGHT for _ in range(EXAMPLES)]
    every = [[float(generator.random() < RIGHT) - own for own in champion] for _ in range(models)]
    best = max(range(models), key=lambda number: sum(every[number]))
    # What is no better on these examples is promoted by neither, whose interval holds it.
    if sum(every[best]) <= 0:
        return False, False
    return (
        improvement(every, best, CONFIDENCE, str(trial)).low > 0,
        improvement([every[best]], 0, CONFIDENCE, str(trial)).low > 0,
    )


def main() -> None:
    print(f"{'challengers':>11} {'trials':>7} {'promoted':>16} {'by the best alone':>18}")
    with Pool(2) as pool:
        for models, trials in TRIALS.items():
            ended = pool.map(tournament, [(models, trial) for trial in range(trials)], 20)
            shares = [sum(column) / trials for column in zip(*ended, strict=True)]
            errors = [math.sqrt(share * (1 - share) / trials) for share in shares]
            told = [f"{100 * s:.1f} ± {100 * e:.1f} %" for s, e in zip(shares, errors, strict=True)]
            print(f"{models:11} {trials:7} {told[0]:>16} {told[1]:>18}")


if __name__ == "__main__":
    main()
