"""Executions of a deployed state machine: listed, started, stopped, and started again."""

from orchestration.deploy.executions.operating import Started, Stopped, start, stop
from orchestration.deploy.executions.rerunning import Rerun, rerun
from orchestration.deploy.executions.runs import Listed, listed

__all__ = ["Listed", "Rerun", "Started", "Stopped", "listed", "rerun", "start", "stop"]
