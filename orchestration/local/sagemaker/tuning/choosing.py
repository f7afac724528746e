"""The values that a search tries.

Grid and random search choose as SageMaker does. Bayesian search and Hyperband are simulated by
random draws: what they would learn from earlier training jobs is not known here.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

Values = dict[str, str]
"""Hyperparameters of one training job, as text."""

KINDS: Final = ("Integer", "Continuous", "Categorical")
SIMULATED: Final = ("Bayesian", "Hyperband")
"""The strategies whose values are drawn at random instead."""


def chosen(config: Mapping[str, Any], name: str) -> Iterator[Values]:
    """Yield the values of one training job after the other.

    Without a `RandomSeed`, the tuning job's name is the seed.
    """
    ranges = config["ParameterRanges"]
    if config["Strategy"] == "Grid":
        yield from combinations(ranges)
        return
    generator = random.Random(config.get("RandomSeed", name))  # noqa: S311 - no secret
    for _ in range(config["ResourceLimits"]["MaxNumberOfTrainingJobs"]):
        yield drawn(ranges, generator)


def combinations(ranges: Mapping[str, Any]) -> Iterator[Values]:
    """Yield every combination of the categorical values."""
    listed = ranges.get("CategoricalParameterRanges", [])
    names = [each["Name"] for each in listed]
    for values in itertools.product(*(each["Values"] for each in listed)):
        yield dict(zip(names, values, strict=True))


def drawn(ranges: Mapping[str, Any], generator: random.Random) -> Values:
    """Return values drawn at random, each on the scale of its range."""
    values: Values = {}
    for each in ranges.get("CategoricalParameterRanges", []):
        values[each["Name"]] = generator.choice(each["Values"])
    for each in ranges.get("IntegerParameterRanges", []):
        values[each["Name"]] = str(round(_scaled(each, generator)))
    for each in ranges.get("ContinuousParameterRanges", []):
        values[each["Name"]] = repr(_scaled(each, generator))
    return values


def _scaled(bounds: Mapping[str, str], generator: random.Random) -> float:
    low, high = float(bounds["MinValue"]), float(bounds["MaxValue"])
    scale = bounds.get("ScalingType", "Auto")
    if scale == "Logarithmic":
        number = math.exp(generator.uniform(math.log(low), math.log(high)))
    elif scale == "ReverseLogarithmic":
        number = 1 - math.exp(generator.uniform(math.log(1 - high), math.log(1 - low)))
    else:
        number = generator.uniform(low, high)
    return min(high, max(low, number))


def names(ranges: Mapping[str, Any]) -> list[str]:
    """Return the names of all tuned hyperparameters."""
    return [
        str(each["Name"]) for kind in KINDS for each in ranges.get(f"{kind}ParameterRanges", [])
    ]
