"""Runs of a pipeline's DAG, by Airflow's REST API: listed, started, stopped, cleared, watched."""

from orchestration.runs.airflow.api import Api
from orchestration.runs.airflow.operating import DagRuns
from orchestration.runs.airflow.task_logs import TaskLog

__all__ = ["Api", "DagRuns", "TaskLog"]
