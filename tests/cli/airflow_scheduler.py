"""Airflow's own scheduler: ``python airflow_scheduler.py``. Each line of its input is some looks.

Its executor takes every task and runs none, as if all workers were busy.
"""

from __future__ import annotations

import sys
from typing import Any

from airflow.executors.base_executor import BaseExecutor
from airflow.jobs.job import Job, run_job
from airflow.jobs.scheduler_job_runner import SchedulerJobRunner

LOOKS = 3


class Busy(BaseExecutor):
    """An executor whose workers come to nothing."""

    def _process_workloads(self, workloads: Any) -> None:
        pass

    def end(self) -> None:
        pass


def main() -> None:
    for _ in iter(sys.stdin.readline, ""):
        job = Job()  # type: ignore[no-untyped-call]  # Airflow leaves it unannotated
        runner = SchedulerJobRunner(
            job, num_runs=LOOKS, scheduler_idle_sleep_time=0, executors=[Busy()]
        )
        run_job(job=job, execute_callable=runner._execute)
        sys.stdout.write("looked\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
