"""Options that every stage takes, whatever its kind."""

from orchestration.stages.options.airflow import AirflowOptions
from orchestration.stages.options.retry import JobRetry

__all__ = ["AirflowOptions", "JobRetry"]
