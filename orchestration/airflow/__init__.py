"""Airflow DAGs of pipelines.

Importing this imports Airflow. A DAG file needs two lines::

    from orchestration.airflow import dag

    dag("pipelines/digits.yaml")

In a DAG of your own, a pipeline is a task group::

    with DAG("nightly"):
        trained = task_group("pipelines/digits.yaml", parameters={"bucket": bucket_of_today()})
        trained >> notify(trained.outputs)

"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.airflow.building import Connection, build, build_group
from orchestration.airflow.groups import PipelineGroup
from orchestration.backends.airflow import render
from orchestration.graph import Workflow

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import DAG

    from orchestration.pipeline import Pipeline

__all__ = ["PipelineGroup", "dag", "task_group"]


def dag(
    pipeline: Pipeline | Workflow | str | Path,
    *,
    parameters: Mapping[str, str | float | bool] | None = None,
    aws_conn_id: str | None = "aws_default",
    region_name: str | None = None,
    deferrable: bool = True,
    **dag_kwargs: Any,
) -> DAG:
    """Make the DAG of a pipeline, given as an object or as the path of a YAML file.

    A relative path is one from the file that calls this. ``parameters`` are new defaults;
    ``dag_kwargs`` go to Airflow's ``DAG`` and win over what the pipeline says (``schedule``,
    ``tags``, ``default_args``). While a job runs its task holds no worker; ``deferrable=False`` is
    for an Airflow without a triggerer.

    Raises :class:`~orchestration.errors.UnsupportedError` with everything that Airflow can't do,
    and :class:`~orchestration.errors.PipelineError` where ``parameters`` do not fit.
    """
    caller = sys._getframe(1).f_code.co_filename
    workflow = _workflow(pipeline, Path(caller).parent)
    made = build(
        render(workflow),
        Connection(aws_conn_id, region_name, deferrable),
        parameters or {},
        dag_kwargs,
    )
    made.fileloc = caller
    return made


def task_group(
    pipeline: Pipeline | Workflow | str | Path,
    *,
    parameters: Mapping[str, Any] | None = None,
    aws_conn_id: str | None = "aws_default",
    region_name: str | None = None,
    deferrable: bool = True,
    **group_kwargs: Any,
) -> PipelineGroup:
    """Make a pipeline a part of the DAG around this call: a task group of its tasks.

    ``parameters`` are texts, numbers and booleans, which no template engine reads, or results of
    the DAG's earlier tasks (``XComArg``). ``group_kwargs`` go to Airflow's ``TaskGroup``
    (``group_id``, by default the pipeline's name; ``default_args``). ``outputs`` of the group is
    what the pipeline has to show. The pipeline's schedule does not count: the DAG has its own.

    Raises the errors of :func:`dag`, and :class:`~orchestration.errors.PipelineError` where no DAG
    is around, or a parameter has no value.
    """
    caller = sys._getframe(1).f_code.co_filename
    return build_group(
        render(_workflow(pipeline, Path(caller).parent)),
        Connection(aws_conn_id, region_name, deferrable),
        parameters or {},
        group_kwargs,
    )


def _workflow(pipeline: Pipeline | Workflow | str | Path, folder: Path) -> Workflow:
    if isinstance(pipeline, Workflow):
        return pipeline
    if isinstance(pipeline, str | Path):
        from orchestration.pipeline import Pipeline as PipelineClass

        return PipelineClass.load(folder / pipeline).lower()
    return pipeline.lower()
