"""Executions of a deployed state machine: a failed one is started again."""

from orchestration.deploy.executions.rerunning import Rerun, rerun

__all__ = ["Rerun", "rerun"]
