"""The dollars of jobs that have run, from what SageMaker says of them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any, Final

from orchestration.cleanup import JobKind
from orchestration.pricing.assumptions import Assumptions, Expected
from orchestration.pricing.jobs import Machines, clusters_of, instance_rate
from orchestration.pricing.knowing import Known
from orchestration.pricing.lines import Line

_HOUR_S: Final = 3600.0


def billed_h(
    kind: JobKind, job: Mapping[str, Any], at: datetime.datetime | None = None
) -> float | None:
    """Return the hours that a job is billed for; ``None`` where it never ran.

    `job`: the answer of its describe operation; `at`: now, where it may still run. Only of training
    jobs does SageMaker tell the billed time itself, which spot capacity makes shorter than the time
    of the training:
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingJob.html
    """
    seconds = job.get("BillableTimeInSeconds")
    if seconds is not None:
        return float(seconds) / _HOUR_S
    start = job.get(f"{kind.word}StartTime")
    end = job.get(f"{kind.word}EndTime") or at or job.get("LastModifiedTime")
    if start is None or end is None:
        return None
    seconds = (end - start).total_seconds()
    return max(0.0, float(seconds)) / _HOUR_S


def of_job(
    kind: JobKind,
    stage: str,
    job: Mapping[str, Any],
    region: str,
    *,
    at: datetime.datetime | None = None,
) -> list[Line]:
    """Return the lines of a job that has run, or runs: one for each group of its machines.

    A search is paid for by its training jobs: ask of each of them.
    """
    known = Known(region=region, parameters={}, assumptions=Assumptions(), bounds={})
    took = billed_h(kind, job, at) or 0.0  # What never ran is not billed.
    spot = ", spot" if job.get("EnableManagedSpotTraining") else ""
    return [
        _of_group(stage, group, took, known, spot)
        for group in clusters_of(f"Create{kind.word}Job", job, known)[0]
    ]


def _of_group(stage: str, group: Machines, took: float, known: Known, spot: str) -> Line:
    kind, count = group.instance_type, group.count
    rate = None if kind is None else instance_rate(kind, known)
    quantity = None if count is None else took * count
    return Line(
        stage=stage,
        what=group.words() + spot,
        rate=rate,
        expected=quantity,
        most=quantity,
        lacks="" if rate is not None else f"no price is known for {kind}",
    )


def mean(hours: Iterable[float]) -> Expected | None:
    """Return what earlier runs took on average; ``None`` without one."""
    known = list(hours)
    if not known:
        return None
    runs = f"mean of {len(known)} jobs" if len(known) > 1 else "as the one job before"
    return Expected(round(sum(known) / len(known), 4), runs)
