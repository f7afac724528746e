"""Task groups of pipelines, in DAGs that somebody else writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import DAG, TaskGroup
from airflow.sdk.definitions._internal.contextmanager import DagContext, TaskGroupContext
from airflow.sdk.definitions.taskgroup import MappedTaskGroup

from orchestration.airflow import versions
from orchestration.backends.airflow import DagSpec
from orchestration.backends.airflow.grouping import unmappable
from orchestration.errors import PipelineError, Problem

if TYPE_CHECKING:
    from airflow.sdk.definitions.xcom_arg import PlainXComArg


class PipelineGroup(TaskGroup):
    """The tasks of a pipeline, as a part of somebody's DAG.

    ``outputs`` is what the pipeline has to show, for tasks after it: all of it, or one output by
    its name, ``outputs["train"]``.
    """

    outputs: PlainXComArg


def current_dag() -> DAG | None:
    """Return the DAG whose ``with`` block this is in."""
    return DagContext.get_current()


@contextmanager
def registering() -> Iterator[set[str]]:
    """Collect the ids of DAGs that a file makes meanwhile, as Airflow does where it imports one.

    A DAG needs no name in its file: the end of its ``with`` block registers it.
    """
    ids: set[str] = set()
    DagContext.current_autoregister_module_name = __name__
    try:
        yield ids
    finally:
        ids |= {dag.dag_id for dag, _ in DagContext.autoregistered_dags}
        DagContext.current_autoregister_module_name = None
        DagContext.autoregistered_dags.clear()


def group_for(
    spec: DagSpec, default_args: Mapping[str, Any], group_kwargs: Mapping[str, Any]
) -> PipelineGroup:
    """Return an empty task group where the caller stands."""
    dag = current_dag()
    if dag is None:
        message = "there is no DAG around this; call it in a `with DAG(...)` block, or use dag()"
        raise PipelineError([Problem("task_group", message)])
    around = TaskGroupContext.get_current(dag)
    reason = unmappable(spec)
    if reason is not None and is_mapped(around):
        message = (
            f"the pipeline can't be mapped over a list: {reason}; start its DAG for each element, "
            "with TriggerDagRunOperator"
        )
        raise PipelineError([Problem("task_group", message)])
    theirs = {**dag.default_args, **(around.default_args if around is not None else {})}
    ours = {name: value for name, value in default_args.items() if name not in theirs}
    return PipelineGroup(
        **{
            "group_id": spec.dag_id.replace(".", "_"),
            **versions.described(spec.description),
            **group_kwargs,
            "prefix_group_id": True,
            "default_args": {**ours, **(group_kwargs.get("default_args") or {})},
        }
    )


def is_mapped(group: TaskGroup | None) -> bool:
    """Return whether a task group, or one around it, is mapped over a list."""
    return any(isinstance(each, MappedTaskGroup) for each in _outwards(group))


def _outwards(group: TaskGroup | None) -> Iterator[TaskGroup]:
    while group is not None:
        yield group
        group = group.parent_group
