"""Savings of spot, measured by past jobs."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import date, timedelta

import pytest

from orchestration.catalog.spot import ENOUGH, LATEST, SpotJob, histories
from orchestration.planning.search.space import Space

P4 = "ml.p4d.24xlarge"
JOB = SpotJob(
    name="a", instance_type=P4, day=date(2026, 11, 1), billed_s=300.0, trained_s=1000.0
)  # fmt: skip


def jobs(*billed: float) -> list[SpotJob]:
    return [
        replace(JOB, name=f"job-{number}", day=JOB.day + timedelta(number), billed_s=seconds)
        for number, seconds in enumerate(billed)
    ]


@pytest.mark.parametrize("count", [ENOUGH, 5, LATEST])
def test_the_interval_holds_four_in_five_further_jobs(count: int) -> None:
    generator = random.Random(count)
    held = 0
    for _ in range(2000):
        drawn = [300 * math.exp(generator.gauss(0, 0.1)) for _ in range(count + 1)]
        paid = histories(jobs(*drawn[1:]))[P4].paid
        held += paid.low <= drawn[0] / 1000 <= paid.high
    assert 0.77 <= held / 2000 <= 0.83


def test_spot_is_never_dearer_than_on_demand() -> None:
    history = histories(jobs(990.0, 700.0, 1010.0))[P4]
    assert history.paid.low < history.paid.expected < history.paid.high == 1.0


def test_only_the_latest_jobs_count() -> None:
    history = histories(jobs(*[900.0] * 5, *[300.0] * LATEST))[P4]
    assert [job.paid for job in history.jobs] == [0.3] * LATEST
    assert history.jobs[0].name == f"job-{4 + LATEST}"


def test_types_without_enough_jobs_keep_the_stated_saving() -> None:
    known = histories(jobs(300.0, 300.0, 300.0))
    few = {"ml.g5.xlarge": replace(known[P4], jobs=known[P4].jobs[1:])}
    space = Space(spot=True, spot_saving=0.5, spot_history={**known, **few})
    assert space.paid(P4).expected == pytest.approx(0.3)
    assert space.paid("ml.g5.xlarge") == (0.5, 0.5, 0.5)
    assert replace(space, spot=False, spot_saving=0.0).paid(P4) == (1.0, 1.0, 1.0)
