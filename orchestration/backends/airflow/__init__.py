"""A step graph as an Airflow DAG: what its tasks are, not yet Airflow's objects.

:func:`render` is a pure function and imports nothing of Airflow; ``orchestration.airflow`` makes a
DAG of what it returns.
"""

from orchestration.backends.airflow.rendering import render
from orchestration.backends.airflow.spec import DagSpec, LoopSpec, TaskSpec, to_json

__all__ = ["DagSpec", "LoopSpec", "TaskSpec", "render", "to_json"]
