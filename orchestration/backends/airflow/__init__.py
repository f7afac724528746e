"""A step graph as an Airflow DAG: what its tasks are, not yet Airflow's objects.

:func:`render` is a pure function and imports nothing of Airflow; ``orchestration.airflow`` makes a
DAG of what it returns.
"""

from typing import TYPE_CHECKING, Any

from orchestration.backends.airflow.spec import DagSpec, LoopSpec, TaskSpec, to_json

if TYPE_CHECKING:
    from orchestration.backends.airflow.rendering import render

__all__ = ["DagSpec", "LoopSpec", "TaskSpec", "render", "to_json"]


def __getattr__(name: str) -> Any:
    # A DAG file whose specification is in its lock file never renders.
    if name == "render":
        from orchestration.backends.airflow.rendering import render

        return render
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
