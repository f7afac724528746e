"""Runs of a DAG that overlap, by each policy; the newer one skipped.

Tasks can't read Airflow's database, list the runs of their DAG or stop one. The first task of a run
that others would make skip therefore leaves the run's id in a variable of Airflow, which the next
run reads. ``max_active_tis_per_dag`` lets only one of them look at a time, so of two that start at
the same moment one goes on.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NoReturn

from airflow.providers.common.compat.sdk import DownstreamTasksSkipped

from orchestration.backends.airflow.spec import SKIPPED
from orchestration.graph import Overlap, overlap_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from orchestration.backends.airflow import DagSpec, TaskSpec

_log = logging.getLogger(__name__)

UNDER_WAY: Final = ("running", "queued")
"""States of a run; one whose tasks were cleared is queued before it goes on."""


def policy_of(spec: DagSpec, schedule: object) -> Overlap:
    """Return the policy of a DAG with a schedule of Airflow's, if it has one."""
    return overlap_of(spec.overlap, starts_itself=schedule is not None)


def bound(policy: Overlap) -> dict[str, Any]:
    """Return the DAG's arguments; runs that need not queue are bounded by Airflow's own setting."""
    return {"max_active_runs": 1} if policy == "queue" else {}


def looking(policy: Overlap, *, deferrable: bool) -> dict[str, Any]:
    """Return the arguments of the DAG's first task."""
    match policy:
        case "skip":
            return {"skips_overlapping": True, "max_active_tis_per_dag": 1}
        case "stop_older":
            return {"stops_older": True, "deferrable": deferrable}
        case _:
            return {}


def giving_way(policy: Overlap, task: TaskSpec) -> dict[str, Any]:
    """Return the arguments of another task; what cleans up after a run does that to its end."""
    cleans_up = task.teardown or task.teardown_of is not None
    return {"gives_way": True} if policy == "stop_older" and not cleans_up else {}


def skip_if_under_way(context: Context) -> None:
    """Skip all tasks that follow if an older run is under way; else be the one that is."""
    # Only the first task of a run needs it, and a DAG file is parsed all the time.
    from airflow.sdk import Variable

    dag_id, own, ti = context["dag"].dag_id, context["run_id"], context["ti"]
    name = variable_of(dag_id)
    older = Variable.get(name, default=None)
    if older not in (None, own) and ti.get_dr_count(
        dag_id=dag_id, run_ids=[older], states=list(UNDER_WAY)
    ):
        skip(context, older, "skip")
    Variable.set(name, own, description=f"The run of {dag_id} that others are skipped for")


def skip(context: Context, older: str, policy: Overlap) -> NoReturn:
    """Skip all tasks that follow, since another run is under way."""
    _log.warning("run %s is under way, so this one is skipped (overlap: %s)", older, policy)
    context["ti"].xcom_push(key=SKIPPED, value=older)
    following = context["task"].get_flat_relatives(upstream=False)
    names = [task.task_id for task in following]
    raise DownstreamTasksSkipped(tasks=names)  # type: ignore[no-untyped-call]  # Airflow's


def variable_of(dag_id: str) -> str:
    """Return the name of the variable with the run that is under way."""
    return f"{dag_id}.under_way"
