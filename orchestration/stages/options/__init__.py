"""Options that every stage takes, whatever its kind, and those of whole pipelines."""

from orchestration.stages.options.airflow import AirflowOptions
from orchestration.stages.options.retry import JobRetry
from orchestration.stages.options.step_functions import (
    AlarmOptions,
    LoggingOptions,
    StepFunctionsOptions,
)

__all__ = ["AirflowOptions", "AlarmOptions", "JobRetry", "LoggingOptions", "StepFunctionsOptions"]
