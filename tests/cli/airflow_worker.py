"""An Airflow worker for one task: ``python airflow_worker.py API_URL RUN TASK``.

It does with a task instance what an executor does once the scheduler has queued it.
"""

from __future__ import annotations

import sys

from airflow.executors import workloads
from airflow.executors.base_executor import BaseExecutor
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from airflow.utils.state import TaskInstanceState
from sqlalchemy import select


def main(url: str, run: str, task: str) -> None:
    with create_session() as session:
        mine = (TaskInstance.run_id == run, TaskInstance.task_id == task)
        instance = session.scalars(select(TaskInstance).where(*mine)).one()
        instance.state = TaskInstanceState.QUEUED
        instance.try_number = 1
        session.flush()
        generator = BaseExecutor().jwt_generator
        workload = workloads.ExecuteTask.make(instance, generator=generator)
    BaseExecutor.run_workload(workload, server=f"{url}/execution/")


if __name__ == "__main__":
    main(*sys.argv[1:])
