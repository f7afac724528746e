"""Settings of Airflow's tasks."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from orchestration.stages.values import Model, Seconds

_DOTTED = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$"


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


_Dotted: TypeAlias = Annotated[str, StringConstraints(pattern=_DOTTED)]
Callables: TypeAlias = Annotated[
    tuple[_Dotted, ...],
    BeforeValidator(_several),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""The dotted name of a callable, or several: ``my_alerts.to_slack``."""
_Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=256)]
_Asset: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[!-~][ -~]{0,1499}$")]


class AirflowOptions(Model):
    """Settings of the tasks on Airflow, of one stage or of all; other backends ignore them.

    Those of a stage go before those of its pipeline and before the ``default_args`` of
    ``dag(…)``; those before the pipeline's.
    """

    pool: _Text | None = None
    """Pool of Airflow that the tasks take slots of."""
    pool_slots: int | None = Field(default=None, ge=1, strict=True)
    """Slots of the pool that each task takes."""
    queue: _Text | None = None
    """Queue of the executor that the tasks wait in."""
    executor: _Text | None = None
    """Executor of the tasks, where Airflow has several."""
    owner: _Text | None = None
    """Owner that Airflow shows beside the tasks."""
    priority_weight: int | None = Field(default=None, strict=True)
    """Tasks of a larger weight start first."""
    weight_rule: Literal["downstream", "upstream", "absolute"] | None = None
    """Way in which the weights of other tasks of the DAG are added to a task's own."""
    retries: int | None = Field(default=None, ge=0, strict=True)
    """Attempts after the first, by default two. They are for workers that die and for AWS when it
    can't be reached; a job that failed is not started again."""
    retry_delay_s: Seconds | None = None
    """Seconds before another attempt."""
    retry_exponential_backoff: bool | None = Field(default=None, strict=True)
    """Wait longer before each further attempt."""
    max_retry_delay_s: Seconds | None = None
    """Longest wait before another attempt, in seconds."""
    execution_timeout_s: Seconds | None = None
    """Seconds that a task may hold a worker at a time; while it waits for a job it holds none. How
    long a job may take is for the stage's own fields to say."""
    on_failure_callback: Callables | None = None
    """Callables that Airflow calls, by their dotted names; imported when the DAG is built."""
    on_success_callback: Callables | None = None
    """Called after a task has succeeded, as ``on_failure_callback`` after one failed."""
    on_retry_callback: Callables | None = None
    """Called before a task is tried again."""
    outlets: tuple[_Asset, ...] = ()
    """Assets, by name or URI, that the stage's last task updates; those of a pipeline, its last."""

    def settings(self) -> dict[str, Any]:
        """Return those that are set, as JSON."""
        settings: dict[str, Any] = self.model_dump(mode="json", exclude_defaults=True)
        return settings
