"""The policy for runs that overlap, as far as Airflow's tasks may carry it out."""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.errors import Problem
from orchestration.graph import Overlap


def problems(policy: Overlap | None) -> Iterator[Problem]:
    """Yield the policy that no task of Airflow can carry out."""
    if policy == "stop_older":
        message = (
            "Airflow lets no task stop another run of its DAG; write queue or skip, or deploy to "
            "Step Functions"
        )
        yield Problem("overlap", message)
