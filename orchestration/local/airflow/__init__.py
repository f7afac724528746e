"""Airflow in a child process, running against the embedded AWS."""

from orchestration.local.airflow.runner import (
    AirflowRun,
    LocalAirflow,
    OnProgress,
    TaskState,
    run,
)

__all__ = ["AirflowRun", "LocalAirflow", "OnProgress", "TaskState", "run"]
