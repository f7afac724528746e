"""Savings of managed spot training, measured by the jobs of an account."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from statistics import fmean, stdev
from typing import Final, NamedTuple

ENOUGH: Final = 3
"""Jobs of an instance type from which its saving is predicted."""
LATEST: Final = 10
"""Jobs of an instance type that count, the latest; older prices say less."""

_STUDENT: Final = (1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383)
"""Student's t that one in ten exceeds, at 2 to 9 degrees of freedom."""


class Paid(NamedTuple):
    """The share of the on-demand price that is paid, with an interval for four in five jobs."""

    low: float
    expected: float
    high: float

    def saving(self) -> str:
        """Return what is saved.

        >>> Paid(0.25, 0.3, 0.36).saving()
        '70% (64% to 75%)'
        """
        saved = f"{1 - self.expected:.0%}"
        if self.low == self.high:
            return saved
        return f"{saved} ({1 - self.high:.0%} to {1 - self.low:.0%})"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotJob:
    """A training job that ran on spot capacity."""

    name: str
    instance_type: str
    day: date
    billed_s: float
    trained_s: float

    @property
    def paid(self) -> float:
        """The share of its time that was billed."""
        return min(1.0, self.billed_s / self.trained_s)


@dataclass(frozen=True, slots=True)
class SpotHistory:
    """The latest spot jobs of one instance type, the latest first; there is one at least."""

    jobs: tuple[SpotJob, ...]

    @property
    def is_enough(self) -> bool:
        """A saving can be predicted from these jobs."""
        return len(self.jobs) >= ENOUGH

    @property
    def paid(self) -> Paid:
        """The share that one more job will pay: by Student's t on the logarithms."""
        logs = [math.log(job.paid) for job in self.jobs]
        count, mean = len(logs), fmean(logs)
        expected = math.exp(mean)
        if not self.is_enough:
            return Paid(expected, expected, expected)
        off = _STUDENT[count - ENOUGH] * stdev(logs) * math.sqrt(1 + 1 / count)
        return Paid(expected * math.exp(-off), expected, min(1.0, expected * math.exp(off)))

    def __str__(self) -> str:
        """Return how many jobs these are, and of which days."""
        first, last = self.jobs[-1].day, self.jobs[0].day
        days = f"of {first}" if first == last else f"of {first} to {last}"
        return f"{len(self.jobs)} job{'s' * (len(self.jobs) > 1)} {days}"


def histories(jobs: Iterable[SpotJob]) -> dict[str, SpotHistory]:
    """Return the history of each instance type.

    >>> day = date(2026, 11, 2)
    >>> job = SpotJob(name="a", instance_type="ml.g5.xlarge", day=day, billed_s=30, trained_s=100)
    >>> str(histories([job])["ml.g5.xlarge"])
    '1 job of 2026-11-02'
    """
    found: dict[str, list[SpotJob]] = {}
    for job in sorted(jobs, key=lambda job: (job.day, job.name), reverse=True):
        found.setdefault(job.instance_type, []).append(job)
    return {name: SpotHistory(tuple(each[:LATEST])) for name, each in found.items()}
