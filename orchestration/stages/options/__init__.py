"""Options that every stage takes, whatever its kind."""

from orchestration.stages.options.airflow import AirflowOptions

__all__ = ["AirflowOptions"]
