"""The differences between the versions of Airflow that are supported, and what is done about each.

- Before 3.3, a trigger that is cancelled is not told why (``on_kill`` is never called).
  :class:`~orchestration.airflow.triggers.FollowTrigger` asks what has become of its task.
- Before 3.3, a task group has no ``doc_md``, and a DAG no result of its own (``add_result``): a
  group's description is not shown, and the task ``outputs`` returns the result.
- Before 3.2.2, deferred tasks are not counted by ``max_active_tis_per_dagrun``, which bounds the
  jobs of a loop. Tasks of loops do not defer there.
- 3.2.1 ends runs in a deadlock where tasks that are mapped together choose between jobs; 3.3.2 does
  not. Such pipelines are refused before 3.3.

Older versions are refused: before 3.1.3 a loop that is never reached fails its run and leaves its
file system behind, and 3.1 was never tried to the end. So that they are refused with that reason,
this module imports only what they have, and :func:`~orchestration.airflow.dag` imports it first.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from airflow import __version__
from airflow.triggers.base import BaseTrigger
from packaging.version import Version

from orchestration.errors import UnsupportedError

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import DAG

_log = logging.getLogger(__name__)

OLDEST: Final = Version("3.2.1")
INSTALLED: Final = Version(__version__)
COUNTS_DEFERRED: Final = Version("3.2.2") <= INSTALLED
CALLS_ON_KILL: Final = hasattr(BaseTrigger, "on_kill")
MAPS_CHOICES: Final = Version("3.3") <= INSTALLED
_LOSSES: Final = (
    (
        Version("3.2.2"),
        "deferred tasks are not counted against the bound of a loop, so the tasks of loops over "
        "jobs keep a worker each while their jobs run",
    ),
    (
        Version("3.3"),
        "triggers are not told why they are cancelled: the job of a deferred task that is marked "
        "is stopped all the same, but that of one that is cleared runs on, and the next attempt "
        "follows it",
    ),
    (
        Version("3.3"),
        "tasks that are mapped together can't choose between jobs; such a pipeline is refused",
    ),
    (
        Version("3.3"),
        "neither the result of a run nor the description of a task group has a place in the UI; "
        "the task 'outputs' returns the result",
    ),
)
"""Losses on older versions, each with the first version that has none of it."""


def check(installed: Version = INSTALLED) -> None:
    """Refuse an Airflow that is too old, however it came to be installed."""
    if installed < OLDEST:
        raise UnsupportedError(
            [
                f"Airflow {installed} is too old; install {OLDEST} or newer, or deploy to Step "
                "Functions (`orchestrate deploy step-functions`)"
            ]
        )


def check_choice(task: str) -> None:
    """Refuse a choice between tasks that are mapped together, where it ends in a deadlock."""
    if not MAPS_CHOICES:
        raise UnsupportedError(
            [
                f"{task!r} chooses between tasks for each element of a list, and Airflow "
                f"{INSTALLED} ends such a run in a deadlock; use 3.3 or newer, or start a DAG for "
                "each element, with TriggerDagRunOperator"
            ]
        )


def losses(installed: Version = INSTALLED) -> tuple[str, ...]:
    """Return what an Airflow does not do, for its log."""
    return tuple(text for first, text in _LOSSES if installed < first)


def show_result(dag: DAG, task: Any) -> None:
    """Show what a task returns as the result of its DAG's runs, in an Airflow that has a place."""
    if hasattr(dag, "add_result"):
        dag.add_result(task.output)


def described(text: str) -> dict[str, str]:
    """Return the argument of a task group that holds its description; Airflow 3.2 has no such."""
    return {"doc_md": text} if text and CALLS_ON_KILL else {}


async def was_decided(task_instance: Any) -> bool:
    """Return whether a deferred task was marked, or ended for good, by what Airflow says of it.

    A task that is scheduled or runs may be one that another triggerer's event let go on.
    """
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import GetTaskStates

    from orchestration.airflow.context import DECIDED

    asked = GetTaskStates(
        dag_id=task_instance.dag_id,
        task_ids=[task_instance.task_id],
        run_ids=[task_instance.run_id],
        map_index=task_instance.map_index,
    )
    # Not RuntimeTaskInstance.get_task_states(), which blocks the event loop of all triggers.
    told: Any = await task_runner.SUPERVISOR_COMMS.asend(asked)
    states = told.task_states.get(task_instance.run_id, {})
    return next(iter(states.values()), "removed") in DECIDED


check()
# Once in each process; Airflow's processes that parse files are forked from one that has said it.
if _lost := losses():
    _log.warning("On Airflow %s, unlike newer ones: %s.", INSTALLED, "; ".join(_lost))
