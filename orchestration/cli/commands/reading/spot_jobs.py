"""Past spot jobs of an account, and what each of them saved."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestration.catalog.spot import SpotJob
    from orchestration.preflight.reader import Reader

MOST: Final = 50
"""Completed training jobs that are looked at, the latest; lists don't say which ran on spot."""


def spot_jobs(reader: Reader) -> Iterator[SpotJob]:
    """Yield the account's latest spot jobs that completed.

    Their saving is 1 less billed over training time:
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingJob.html
    """
    from orchestration.catalog.spot import SpotJob

    listed = reader.every(
        "sagemaker", "ListTrainingJobs", "TrainingJobSummaries", StatusEquals="Completed",
        SortBy="CreationTime", SortOrder="Descending", MaxResults=MOST,
    )  # fmt: skip
    for summary in islice(listed, MOST):
        name = summary["TrainingJobName"]
        job = reader.ask(
            "sagemaker", "DescribeTrainingJob", ("ResourceNotFound",), TrainingJobName=name
        )
        if job is None or not job.get("EnableManagedSpotTraining"):
            continue  # Deleted since it was listed, or on demand.
        billed, trained = job.get("BillableTimeInSeconds"), job.get("TrainingTimeInSeconds")
        instance_type = job["ResourceConfig"].get("InstanceType")  # None: a mixed cluster.
        if billed and trained and instance_type:
            yield SpotJob(
                name=name, instance_type=instance_type, day=job["CreationTime"].date(),
                billed_s=billed, trained_s=trained,
            )  # fmt: skip
