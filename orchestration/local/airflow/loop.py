"""The run of a DAG, as in ``DAG.test``, but with all triggers waiting at once.

Airflow decides what runs, runs it and keeps its state; this is only the loop around it. Tasks run
here one at a time, as on a worker; all triggers wait in one thread, as in a triggerer.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun, get_or_create_dagrun
from airflow.models.taskinstance import TaskInstance, clear_task_instances
from airflow.models.trigger import Trigger
from airflow.models.xcom import XComModel
from airflow.sdk import DAG, timezone
from airflow.sdk._shared.module_loading import import_string
from airflow.sdk.api.datamodels._generated import TaskInstance as TaskInstanceData
from airflow.sdk.exceptions import ParamValidationError
from airflow.sdk.execution_time.comms import DeferTask
from airflow.sdk.execution_time.supervisor import run_task_in_process
from airflow.sdk.serde import deserialize, serialize
from airflow.serialization.serialized_objects import DagSerialization, create_scheduler_operator
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy import select
from sqlalchemy.orm.attributes import set_committed_value

from orchestration.execution.parameters import problems
from orchestration.local.airflow.callbacks import call_back

if TYPE_CHECKING:
    from airflow.triggers.base import BaseTrigger
    from sqlalchemy.orm import Session

Emit = Callable[[Mapping[str, Any]], None]

_PAUSE_S = 0.02
_accounts: dict[tuple[str, str], str] = {}
"""The embedded account that each run was last run in, by DAG and run."""
_IN_FLIGHT = frozenset({TaskInstanceState.DEFERRED, TaskInstanceState.RUNNING})


def run(dag: DAG, run_id: str, conf: Mapping[str, Any], emit: Emit) -> dict[str, Any]:
    """Run a DAG to its end and return the ``end`` event."""
    return _Run(dag, emit).run(run_id, conf)


class _Run:
    def __init__(self, dag: DAG, emit: Emit) -> None:
        self._dag = dag
        self._emit = emit
        self._triggers = _Triggers()
        self._seen: dict[tuple[str, int], tuple[str, int]] = {}

    def run(self, run_id: str, conf: Mapping[str, Any]) -> dict[str, Any]:
        with create_session() as session:
            try:
                run = self._started(run_id, conf, session)
                self._take_over(run, session)
            except ParamValidationError as error:
                session.rollback()
                return self._refused(conf, error)
            try:
                while run.state == DagRunState.RUNNING:
                    self._round(run, session)
                self._report(run, session)
                return self._end(run, session)
            finally:
                self._triggers.close()

    def _started(self, run_id: str, conf: Mapping[str, Any], session: Session) -> DagRun:
        serialized = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(self._dag))
        mine = (DagRun.dag_id == self._dag.dag_id, DagRun.run_id == run_id)
        failed = session.scalar(select(DagRun).where(*mine, DagRun.state == DagRunState.FAILED))
        account = os.environ["AWS_ENDPOINT_URL"]
        before = _accounts.get((self._dag.dag_id, run_id))
        _accounts[self._dag.dag_id, run_id] = account
        # In another account, or with other parameters, it is another run of this name.
        if failed is not None and before == account and failed.conf == dict(conf):
            failed.dag = serialized
            return self._cleared(failed, session)
        now = timezone.utcnow()
        run = get_or_create_dagrun(
            dag=serialized,
            run_id=run_id,
            logical_date=None,
            data_interval=None,
            run_after=now,
            start_date=now,
            conf=dict(conf),
            triggered_by=DagRunTriggeredByType.TEST,
            triggering_user_name=None,
            session=session,
        )
        session.commit()
        return run

    def _take_over(self, run: DagRun, session: Session) -> None:
        """Go on with what a killed Airflow left, as a scheduler and a triggerer do."""
        for instance in run.get_task_instances(session=session):
            if instance.state == TaskInstanceState.DEFERRED:
                row = session.get_one(Trigger, instance.trigger_id)
                following = _Following(str(instance.next_method), instance.next_kwargs or {})
                trigger = import_string(row.classpath)(**row.kwargs)
                self._triggers.start(instance.id, following, trigger)
            elif instance.state == TaskInstanceState.QUEUED:
                instance.state = TaskInstanceState.SCHEDULED
            elif instance.state == TaskInstanceState.RUNNING:
                again = instance.try_number <= instance.max_tries
                state = TaskInstanceState.UP_FOR_RETRY if again else TaskInstanceState.FAILED
                instance.set_state(state, session=session)
                instance.next_method = instance.next_kwargs = None
        session.commit()

    def _cleared(self, run: DagRun, session: Session) -> DagRun:
        """Clear what failed and what follows it, as a person does.

        With a task goes the setup that it needs, and with a setup all that waits for it.
        """
        instances = run.get_task_instances(session=session)
        tasks = {i.task_id for i in instances if i.state == TaskInstanceState.FAILED}
        while True:
            subset = self._dag.partial_subset(
                tasks, include_downstream=True, include_upstream=False
            )
            setups = {task.task_id for task in subset.tasks if task.is_setup}
            if setups <= tasks:
                break
            tasks |= setups
        cleared = [i for i in instances if i.task_id in subset.task_dict]
        clear_task_instances(cleared, session, dag_run_state=DagRunState.RUNNING)
        session.commit()
        return run

    def _refused(self, conf: Mapping[str, Any], error: ParamValidationError) -> dict[str, Any]:
        """Report a rejected input as our first task would: Airflow creates no run for it."""
        specs = getattr(self._dag.task_dict.get("inputs"), "parameters", ())
        defaults = {name: v for name, v in self._dag.params.dump().items() if v is not None}
        wrong = problems(specs, {**defaults, **conf}) or [str(error)]
        return {
            "state": "failed",
            "tasks": [],
            "outputs": None,
            "error": "InvalidInput",
            "cause": "; ".join(wrong),
        }

    def _round(self, run: DagRun, session: Session) -> None:
        session.expire_all()
        self._triggers.resume(session)
        # The scheduler loads it along; this run may belong to no session any more.
        set_committed_value(run, "dag_model", session.get_one(DagModel, self._dag.dag_id))
        ready, callback = run.update_state(session=session, execute_callbacks=False)
        for instance in ready:
            if instance.state != TaskInstanceState.UP_FOR_RESCHEDULE:
                instance.try_number += 1
            instance.state = TaskInstanceState.SCHEDULED
            instance.scheduled_dttm = timezone.utcnow()
        session.commit()
        if callback is not None:
            call_back(self._dag, callback)
        self._report(run, session)
        admitted = self._admitted(run, session)
        for instance in admitted:
            self._work(instance)
            self._report(run, session)
        if not admitted and run.state == DagRunState.RUNNING:
            self._triggers.wait()

    def _admitted(self, run: DagRun, session: Session) -> list[TaskInstance]:
        """Return the tasks that the scheduler would start, within the bounds of loops."""
        instances = run.get_task_instances(session=session)
        active = Counter(i.task_id for i in instances if i.state in _IN_FLIGHT)
        admitted = []
        for instance in sorted(instances, key=lambda i: (i.queued_dttm is None, i.map_index)):
            bound = self._dag.task_dict[instance.task_id].max_active_tis_per_dagrun
            resumed = instance.next_method is not None
            free = bound is None or active[instance.task_id] < bound
            if instance.state == TaskInstanceState.SCHEDULED and (resumed or free):
                admitted.append(instance)
                active[instance.task_id] += 1
        return admitted

    def _work(self, instance: TaskInstance) -> None:
        """Run a task as a worker does."""
        task = self._dag.task_dict[instance.task_id]
        instance.set_state(TaskInstanceState.QUEUED)
        self._emit_state(instance, "running")
        data = TaskInstanceData(
            id=UUID(str(instance.id)),
            task_id=instance.task_id,
            dag_id=instance.dag_id,
            run_id=instance.run_id,
            try_number=instance.try_number,
            map_index=instance.map_index,
            dag_version_id=UUID(str(instance.dag_version_id)),
        )
        result = run_task_in_process(ti=data, task=task)
        instance.set_state(result.ti.state)
        instance.task = create_scheduler_operator(result.ti.task)
        if isinstance(result.msg, DeferTask):
            kwargs = cast("dict[str, Any]", deserialize(cast(Any, result.msg.trigger_kwargs)))
            trigger = import_string(result.msg.classpath)(**kwargs)
            following = _Following(result.msg.next_method, dict(result.msg.next_kwargs or {}))
            self._triggers.start(instance.id, following, trigger)

    def _report(self, run: DagRun, session: Session) -> None:
        for instance in run.get_task_instances(session=session):
            if instance.state is not None:
                self._emit_state(instance, str(instance.state))

    def _emit_state(self, instance: TaskInstance, state: str) -> None:
        key = (instance.task_id, instance.map_index)
        if state in ("scheduled", "queued") or self._seen.get(key) == (state, instance.try_number):
            return
        self._seen[key] = (state, instance.try_number)
        self._emit({"task": _state(instance) | {"state": state}})

    def _end(self, run: DagRun, session: Session) -> dict[str, Any]:
        order = {task_id: place for place, task_id in enumerate(self._dag.task_dict)}
        instances = sorted(
            run.get_task_instances(session=session),
            key=lambda i: (order[i.task_id], i.map_index),
        )
        failed = [i for i in instances if i.state == TaskInstanceState.FAILED]
        failure = self._xcom(failed[0], "error", session) if failed else None
        succeeded = run.state == DagRunState.SUCCESS
        last = next((i for i in instances if i.task_id == "outputs"), None)
        culprit = failed[0].task_id if failed else "the run"
        return {
            "state": "success" if succeeded else "failed",
            "tasks": [_state(instance) for instance in instances],
            "outputs": self._xcom(last, "return_value", session) if succeeded and last else None,
            "error": None if succeeded else (failure or {}).get("error", "TaskFailed"),
            "cause": None
            if succeeded
            else (failure or {}).get("cause", f"{culprit} failed; see the log"),
        }

    def _xcom(self, instance: TaskInstance, key: str, session: Session) -> Any:
        """Read an XCom of a task instance."""
        row = session.scalars(
            select(XComModel).where(
                XComModel.dag_id == instance.dag_id,
                XComModel.run_id == instance.run_id,
                XComModel.task_id == instance.task_id,
                XComModel.map_index == instance.map_index,
                XComModel.key == key,
            )
        ).first()
        if row is None:
            return None
        value = json.loads(row.value) if isinstance(row.value, str) else row.value
        return deserialize(value)


@dataclass(frozen=True, slots=True)
class _Following:
    """The way a deferred task goes on: the method, and the arguments from the task."""

    method: str
    kwargs: Mapping[str, Any]


class _Triggers:
    """Triggers that wait concurrently in one thread, as in a triggerer."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._fired: queue.Queue[tuple[Any, str, dict[str, Any]]] = queue.Queue()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def start(self, instance_id: Any, following: _Following, trigger: BaseTrigger) -> None:
        asyncio.run_coroutine_threadsafe(self._first(instance_id, following, trigger), self._loop)

    def resume(self, session: Session) -> None:
        """Resume the tasks whose triggers have fired."""
        while not self._fired.empty():
            instance_id, method, kwargs = self._fired.get()
            instance = session.get_one(TaskInstance, instance_id)
            instance.next_method = method
            instance.next_kwargs = kwargs
            instance.state = TaskInstanceState.SCHEDULED
            session.commit()

    def wait(self) -> None:
        """Wait until a trigger has fired, or for a moment (retries wait, too)."""
        deadline = time.monotonic() + 10 * _PAUSE_S
        while self._fired.empty() and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _first(self, instance_id: Any, following: _Following, trigger: BaseTrigger) -> None:
        try:
            event = await anext(aiter(trigger.run()))
        except Exception as error:  # as in a triggerer, a trigger that fails ends no other
            kwargs = {"error": "Trigger failure", "traceback": [repr(error)]}
            self._fired.put((instance_id, "__fail__", kwargs))
        else:
            kwargs = {**following.kwargs, "event": serialize(event.payload)}
            self._fired.put((instance_id, following.method, kwargs))


def _state(instance: TaskInstance) -> dict[str, Any]:
    return {
        "task_id": instance.task_id,
        "map_index": instance.map_index,
        "state": str(instance.state),
        "try_number": instance.try_number,
        "start": _iso(instance.start_date),
        "end": _iso(instance.end_date),
    }


def _iso(moment: Any) -> str | None:
    return None if moment is None else moment.isoformat()
