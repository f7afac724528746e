"""Runs of a pipeline as its user sees them: their jobs, logs and progress, whatever drives them.

Jobs are found in the account by the beginnings of their names and by their tags, which are the same
on Step Functions, on Airflow and in a run from this machine.
"""

from orchestration.runs.executions import Execution, Executions
from orchestration.runs.identities import error_of, tokens_of
from orchestration.runs.jobs import Job, Jobs
from orchestration.runs.logs import Event, Logs, Stream
from orchestration.runs.operating import Listed, Runs
from orchestration.runs.watching import JobView, Snapshot, StageView, Watch

__all__ = [
    "Event",
    "Execution",
    "Executions",
    "Job",
    "JobView",
    "Jobs",
    "Listed",
    "Logs",
    "Runs",
    "Snapshot",
    "StageView",
    "Stream",
    "Watch",
    "error_of",
    "tokens_of",
]
