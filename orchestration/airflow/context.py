"""A run's values, from the context of an Airflow task."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from typing_extensions import override

from orchestration.backends.airflow.spec import ERROR as ERROR_KEY
from orchestration.backends.airflow.spec import INPUTS
from orchestration.backends.airflow.triggers import RUN
from orchestration.errors import ExpressionError
from orchestration.execution.places import Attempt
from orchestration.expressions import Environment, Json
from orchestration.expressions.evaluate import run_token
from orchestration.refs.times import ISO

if TYPE_CHECKING:
    from airflow.sdk import Context

ASKING: Final = threading.RLock()
"""Held while a task asks Airflow for something. The steps of a loop run in several threads; where
a task runs in Airflow's own process (``dag.test()``, the local Airflow), two threads that ask at
once get each other's answers."""
DECIDED = frozenset({"failed", "success", "skipped", "upstream_failed", "removed", "restarting"})
"""States of a task that a person has marked or cleared, or that has no attempt left."""
_EVENT_TRIGGERED = "asset_triggered"
_AT_TIMES = ("scheduled", "backfill")


@dataclass(slots=True)
class TaskEnvironment(Environment):
    """The environment of a task: parameters, earlier tasks' XComs, the run's identity."""

    context: Context
    reads: Mapping[str, Mapping[str, Any]]
    """The task that left each result, and whether in the same element of a mapped group."""
    items_task: str | None = None
    """The task that returned the list, in a mapped group."""
    group: str | None = None
    """The task group around all of a pipeline's tasks, in somebody's own DAG."""
    _parameters: Mapping[str, Json] | None = None
    _inputs: Mapping[str, Json] | None = None
    _pulled: dict[str, Any] = field(default_factory=dict)

    @override
    def result(self, step: str, output: str) -> Json:
        if step not in self.reads:
            raise ExpressionError(f"no task is known that left the results of step {step!r}")
        results = self.left(step)
        if results is None or output not in results:
            raise ExpressionError(f"step {step!r} left no output {output!r}")
        return results[output]

    def left(self, step: str) -> Mapping[str, Json] | None:
        """Return the results that a task has left of a step; ``None``: it has not."""
        with ASKING:
            if step not in self._pulled:
                source = self.reads[step]
                self._pulled[step] = self.context["ti"].xcom_pull(
                    task_ids=source["task"],
                    key=step,
                    map_indexes=self._index if source["element"] else None,
                )
            return cast("Mapping[str, Json] | None", self._pulled[step])

    @override
    def parameter(self, name: str) -> Json:
        if self._parameters is None:
            self._parameters = self._given()
        return self._parameters[name]

    @override
    def run(self) -> str:
        """Return the run's identity: equal for every attempt of every task of one run."""
        identity = f"{self.context['dag'].dag_id}/{self.context['run_id']}"
        if self.group is not None:
            identity = f"{identity}/{self.group}"
        elif not event_triggered(self.context):
            return run_token(identity)
        # An event that comes twice starts two runs of Airflow, which are one; the elements that a
        # group is mapped over are several.
        return run_token(str(self._of_inputs().get(RUN, identity)))

    @override
    def item(self) -> Json:
        """Return the element of the mapped group around the task."""
        if self.items_task is None:
            raise ExpressionError("there is no loop around this step")
        with ASKING:
            items = self.context["ti"].xcom_pull(task_ids=self.items_task, map_indexes=None)
        return cast("Sequence[Json]", items)[self._index]

    def _given(self) -> Mapping[str, Json]:
        told = event_triggered(self.context) or self._is_timed()
        if self.group is None and not told:
            return cast("Mapping[str, Json]", self.context["params"])
        # A DAG's params are its author's, and of no event or time: the first task returns them all.
        values = self._of_inputs()
        if not values:
            raise ExpressionError(f"task {self._first!r} left no parameters")
        return values

    def _is_timed(self) -> bool:
        """Return whether a parameter holds the time of this run."""
        first = self.context["dag"].task_dict.get(INPUTS)
        timed = getattr(first, "time_parameter", None) is not None
        return timed and scheduled_time(self.context) is not None

    def _of_inputs(self) -> Mapping[str, Json]:
        """Return what the first task left; that of the same element where the group is mapped."""
        with ASKING:
            if self._inputs is None:
                ti = self.context["ti"]
                values = ti.xcom_pull(task_ids=self._first, map_indexes=None)
                if values is None and self._index >= 0:
                    values = ti.xcom_pull(task_ids=self._first, map_indexes=self._index)
                self._inputs = cast("Mapping[str, Json]", values or {})
            return self._inputs

    @property
    def _first(self) -> str:
        return INPUTS if self.group is None else f"{self.group}.{INPUTS}"

    @property
    def _index(self) -> int:
        return cast(int, self.context["ti"].map_index)


def event_triggered(context: Context) -> bool:
    """Return whether events of assets started the run."""
    run = context.get("dag_run")
    return bool(run is not None and run.run_type == _EVENT_TRIGGERED)


def scheduled_time(context: Context) -> str | None:
    """Return the time for which a schedule or a back-fill started the run, as EventBridge does."""
    run = context.get("dag_run")
    if run is None or run.run_type not in _AT_TIMES:
        return None
    # A timetable of somebody's own may have intervals: such a run is due at the end of its own.
    moment = run.data_interval_end or run.logical_date
    return None if moment is None else f"{moment.astimezone(UTC):{ISO}}"


def attempt(context: Context) -> Attempt:
    """Return which attempt at its task this is: only a clear raises the limit of its tries."""
    ti = context["ti"]
    cleared = ti.max_tries - (context["task"].retries or 0)
    return Attempt(
        first=ti.try_number == 1,
        cleared=cleared > 0,
        first_since_cleared=cleared > 0 and ti.try_number == cleared + 1,
    )


def run_begun(context: Context) -> float:
    """Return when the run was last started, in seconds since 1970.

    A person who clears tasks of a run that has ended starts it again. Airflow sets its start anew
    then, while a task that was not cleared keeps what it returned.
    """
    run = context.get("dag_run")
    start = None if run is None else run.start_date
    return 0.0 if start is None else start.timestamp()


def attempt_number(context: Context) -> int:
    """Return a number that is larger after each time that a person has cleared the task."""
    cleared: int = context["ti"].max_tries - (context["task"].retries or 0)
    return 1 + max(cleared, 0)


def another_follows(context: Context) -> bool:
    """Return whether another attempt goes on with what a task that is being ended has started.

    Airflow ends a task that a person has marked or cleared, and one that it has given up: of a
    scheduler that died, or one that it has not heard from for a while. So does whoever runs the
    worker. Only what a person has done shows in the task's state.
    """
    ti = context["ti"]
    retried = ti.try_number <= ti.max_tries
    try:
        with ASKING:
            states = ti.get_task_states(
                dag_id=context["dag"].dag_id,
                task_ids=[context["task"].task_id],
                run_ids=[context["run_id"]],
                map_index=ti.map_index,
            ).get(context["run_id"], {})
    except Exception:
        # The API server may be what is gone; a retry finds what runs.
        return bool(retried)
    state = next(iter(states.values()), "removed")
    return state not in DECIDED and (state != "running" or bool(retried))


def fail(context: Context, error: str, cause: str, *, for_good: bool = True) -> NoReturn:
    """Fail the task; for good where Airflow's retries would only repeat it, or pay twice."""
    # Airflow wipes it at a retry.
    context["ti"].xcom_push(key=ERROR_KEY, value={"error": error, "cause": cause})
    raise (AirflowFailException if for_good else AirflowException)(f"{error}: {cause}")
