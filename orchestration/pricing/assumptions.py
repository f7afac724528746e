"""Figures that no file states: how long jobs take, how many elements loops have, how much data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from orchestration.errors import PipelineError, Problem, near

QUANTITIES: Final = {
    "hours": "hours of a job; of a serverless endpoint, hours of answering a month",
    "elements": "elements of a loop: checkpoints, objects to copy",
    "gb": "gigabytes to copy",
    "log_gb": "gigabytes that a job writes to its log",
}
"""The quantities of a stage that can be assumed, and what they are."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The hours that a stage's job is expected to take."""

    hours: float
    source: str
    """The source of the figure: ``assumed``, ``planned``, ``mean of 3 runs``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """The figures that are taken for given beyond the pipeline."""

    values: Mapping[str, float] = field(default_factory=dict)
    """``{"train.hours": 2}``."""
    expected: Mapping[str, Expected] = field(default_factory=dict)
    """By stage: from plans and earlier runs; what is assumed counts first."""
    spot_saving: float = 0.0
    """The share of the price on demand that spot capacity is expected to save."""
    runs_per_month: float | None = None

    def of(self, stage: str, quantity: str) -> float | None:
        """Return a figure of a stage, if one is given."""
        return self.values.get(f"{stage}.{quantity}")

    def hours(self, stage: str) -> Expected | None:
        """Return the hours that a job of a stage is expected to take."""
        given = self.of(stage, "hours")
        return self.expected.get(stage) if given is None else Expected(given, "assumed")


def parse(pairs: Iterable[str], stages: Collection[str]) -> dict[str, float]:
    """Parse ``stage.quantity=number`` pairs.

    Raises:
        PipelineError: with all that is wrong.

    >>> parse(["train.hours=1.5"], {"train"})
    {'train.hours': 1.5}
    """
    values: dict[str, float] = {}
    problems: list[Problem] = []
    for text in pairs:
        name, equals, number = text.partition("=")
        stage, dot, quantity = name.rpartition(".")
        message = ""
        if not (equals and dot):
            message = f"expected STAGE.QUANTITY=NUMBER, such as train.hours=1.5, got {text!r}"
        elif stage not in stages:
            message = f"there is no stage {stage!r}{near(stage, stages)}"
        elif quantity not in QUANTITIES:
            known = "; ".join(f"{key}: {words}" for key, words in QUANTITIES.items())
            message = f"unknown quantity {quantity!r}{near(quantity, QUANTITIES)} ({known})"
        elif (value := _number(number)) is None:
            message = f"expected a number from 0 on, got {number!r}"
        else:
            values[name] = value
        if message:
            problems.append(Problem(f"--assume {name}", message))
    if problems:
        raise PipelineError(problems)
    return values


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
