"""The task that looks for jobs when all tasks that start some have ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestration.backends.airflow.draft import Draft
from orchestration.backends.airflow.spec import LEFTOVERS
from orchestration.cleanup import Leftovers
from orchestration.expressions import Json
from orchestration.graph import Call, Graph, all_steps


def tasks(left: Leftovers, others: Sequence[Draft]) -> Iterator[Draft]:
    """Yield the task, where runs start jobs; nothing waits for it."""
    if left.jobs:
        yield Draft(
            stage=LEFTOVERS,
            kind="leftovers",
            named_by=LEFTOVERS,
            upstream=[task for task in others if _starts_jobs(task)],
            open=False,
        )


def arguments(left: Leftovers) -> dict[str, Json]:
    """Return the task's arguments."""
    return {"jobs": {jobs.kind.word: list(jobs.prefixes) for jobs in left.jobs}}


def _starts_jobs(task: Draft) -> bool:
    steps = all_steps(Graph(tuple(task.performed)))
    return any(isinstance(step, Call) and step.starts_job for step in steps)
