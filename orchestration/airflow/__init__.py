"""Airflow DAGs of pipelines.

Airflow is imported when a DAG is made. A DAG file needs two lines::

    from orchestration.airflow import dag

    dag("pipelines/digits.yaml")

In a DAG of your own, a pipeline is a task group::

    with DAG("nightly"):
        trained = task_group("pipelines/digits.yaml", parameters={"bucket": bucket_of_today()})
        trained >> notify(trained.outputs)

"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import DAG

    from orchestration.airflow.dags.groups import PipelineGroup
    from orchestration.graph import ParameterValue, Workflow
    from orchestration.pipeline import Pipeline
    from orchestration.stages.kinds import StageSource

__all__ = ["PipelineGroup", "dag", "task_group"]


def dag(
    pipeline: Pipeline | Workflow | str | Path,
    *,
    parameters: Mapping[str, ParameterValue] | None = None,
    aws_conn_id: str | None = "aws_default",
    region_name: str | None = None,
    deferrable: bool = True,
    stages: Iterable[StageSource] = (),
    **dag_kwargs: Any,
) -> DAG:
    """Make the DAG of a pipeline, given as an object or as the path of a YAML file.

    A relative path is one from the file that calls this. Of a YAML file, only the lock file is
    read, and the YAML itself where ``orchestrate lock`` was not run since it changed.
    ``parameters`` are new defaults; ``dag_kwargs`` go to Airflow's ``DAG`` and win over what the
    pipeline says (``schedule``, ``tags``, ``default_args``); callbacks (``on_failure_callback``,
    ``on_success_callback``) stand beside those of the pipeline's ``notify``. While a job runs its
    task holds no worker; ``deferrable=False`` is for an Airflow without a triggerer. ``stages`` are
    the modules (or their names) of further kinds of stages; with a fresh lock file they are not
    imported.

    Raises :class:`~orchestration.errors.UnsupportedError` with everything that Airflow can't do,
    and :class:`~orchestration.errors.PipelineError` where ``parameters`` do not fit.
    """
    # Imported here: Airflow loads the plugin of this package in processes that parse nothing.
    from orchestration.airflow import versions  # noqa: F401 (refuses what can't import the others)
    from orchestration.airflow.dags.building import Connection, build
    from orchestration.airflow.dags.reading import specification

    caller = sys._getframe(1).f_code.co_filename
    made = build(
        specification(pipeline, Path(caller).parent, stages),
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
    stages: Iterable[StageSource] = (),
    **group_kwargs: Any,
) -> PipelineGroup:
    """Make a pipeline a part of the DAG around this call: a task group of its tasks.

    ``parameters`` are texts, numbers and booleans, which no template engine reads, or results of
    the DAG's earlier tasks (``XComArg``). ``group_kwargs`` go to Airflow's ``TaskGroup``
    (``group_id``, by default the pipeline's name; ``default_args``). ``outputs`` of the group is
    what the pipeline has to show. The pipeline's schedule and ``notify`` do not count: the DAG has
    its own.

    Raises the errors of :func:`dag`, and :class:`~orchestration.errors.PipelineError` where no DAG
    is around, or a parameter has no value.
    """
    from orchestration.airflow import versions  # noqa: F401 (refuses what can't import the others)
    from orchestration.airflow.dags.building import Connection, build_group
    from orchestration.airflow.dags.reading import specification

    caller = sys._getframe(1).f_code.co_filename
    return build_group(
        specification(pipeline, Path(caller).parent, stages),
        Connection(aws_conn_id, region_name, deferrable),
        parameters or {},
        group_kwargs,
    )


def __getattr__(name: str) -> Any:
    if name == "PipelineGroup":
        from orchestration.airflow.dags.groups import PipelineGroup

        return PipelineGroup
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
