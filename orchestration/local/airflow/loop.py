"""The run of a DAG, as in ``DAG.test``, but with all triggers waiting at once.

Airflow decides what runs, runs it and keeps its state; this is only the loop around it. Tasks run
here one at a time, as on a worker; all triggers wait in one thread, as in a triggerer.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance, clear_task_instances
from airflow.models.trigger import Trigger
from airflow.models.xcom import XComModel
from airflow.sdk import DAG, timezone
from airflow.sdk._shared.module_loading import import_string
from airflow.sdk.api.datamodels._generated import TaskInstance as TaskInstanceData
from airflow.sdk.exceptions import ParamValidationError
from airflow.sdk.execution_time.comms import DeferTask
from airflow.sdk.execution_time.supervisor import run_task_in_process
from airflow.sdk.serde import deserialize
from airflow.serialization.serialized_objects import DagSerialization, create_scheduler_operator
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm.attributes import set_committed_value

from orchestration.backends.airflow.spec import ERROR, PERFORMED
from orchestration.execution.parameters import problems
from orchestration.local.airflow.callbacks import call_back
from orchestration.local.airflow.starting import start_at, start_by
from orchestration.local.airflow.waiting import Following, Triggers

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

Emit = Callable[[Mapping[str, Any]], None]

_RETRIES_S = 0.2
"""Seconds between looks at tasks that may be due again."""
_AT_MOST_S = 5.0
_AGAIN = (TaskInstanceState.UP_FOR_RETRY, TaskInstanceState.UP_FOR_RESCHEDULE)
_IN_FLIGHT = frozenset({TaskInstanceState.DEFERRED, TaskInstanceState.RUNNING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """The reason for a run; with neither, a person started it."""

    event: Mapping[str, Any] | None = None
    """The fields that the event of an asset tells."""
    scheduled: datetime | None = None
    """The moment of the timetable."""


def run(
    dag: DAG,
    run_id: str,
    conf: Mapping[str, Any],
    emit: Emit,
    began: Began,
) -> dict[str, Any]:
    """Run a DAG to its end and return the ``end`` event."""
    return _Run(dag, emit, began).run(run_id, conf)


class _Run:
    def __init__(self, dag: DAG, emit: Emit, began: Began) -> None:
        self._dag = dag
        self._began = began
        self._emit = emit
        self._triggers = Triggers()
        self._seen: dict[tuple[str, int], tuple[str, int]] = {}
        self._instances: dict[Any, str | None] = {}

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
        before: DagRun | None = session.scalar(select(DagRun).where(*mine))
        # In another account, or with other parameters, it is another run of this name.
        is_same = _moved_to(os.environ["AWS_ENDPOINT_URL"], self._dag.dag_id, run_id)
        if before is not None and is_same and before.conf == dict(conf):
            before.dag = serialized
            if before.state == DagRunState.FAILED:
                return self._cleared(before, session)
            if before.state == DagRunState.RUNNING:
                return before
        now = timezone.utcnow()
        # Not Airflow's get_or_create_dagrun(), which deletes another run without a logical date.
        if before is not None:
            session.delete(before)
            session.commit()
        run = serialized.create_dagrun(
            run_id=run_id,
            logical_date=None,
            data_interval=None,
            run_after=now,
            start_date=now,
            conf=dict(conf),
            run_type=DagRunType.MANUAL,
            state=DagRunState.RUNNING,
            triggered_by=DagRunTriggeredByType.TEST,
            triggering_user_name=None,
            session=session,
        )
        if self._began.event is not None:
            start_by(run, self._began.event, session)
        elif self._began.scheduled is not None:
            start_at(run, self._began.scheduled)
        session.commit()
        return run

    def _take_over(self, run: DagRun, session: Session) -> None:
        """Go on with what a killed Airflow left, as a scheduler and a triggerer do."""
        for instance in run.get_task_instances(session=session):
            if instance.state == TaskInstanceState.DEFERRED:
                row = session.get_one(Trigger, instance.trigger_id)
                following = Following(str(instance.next_method), instance.next_kwargs or {})
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
        changed = self._report(run, session)
        admitted = self._admitted(run, session)
        for instance in admitted:
            self._work(instance)
            self._emit_state(instance, str(instance.state))
            self._instances[instance.id] = instance.state
        if not (admitted or changed) and run.state == DagRunState.RUNNING:
            # A round takes some 50 ms of a processor, and without a trigger only these change.
            again = run.get_task_instances(_AGAIN, session=session)
            self._triggers.wait(_RETRIES_S if again else _AT_MOST_S)

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
            following = Following(result.msg.next_method, dict(result.msg.next_kwargs or {}))
            self._triggers.start(instance.id, following, trigger)

    def _report(self, run: DagRun, session: Session) -> bool:
        """Report new states; return whether any task instance is new or has changed."""
        instances = run.get_task_instances(session=session)
        for instance in instances:
            if instance.state is not None:
                self._emit_state(instance, str(instance.state))
        before, self._instances = self._instances, {i.id: i.state for i in instances}
        return self._instances != before

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
        failure = self._xcom(failed[0], XComModel.key == ERROR, session) if failed else None
        succeeded = run.state == DagRunState.SUCCESS
        last = next((i for i in instances if i.task_id == "outputs"), None)
        culprit = failed[0].task_id if failed else "the run"
        result, performed = XComModel.key == "return_value", XComModel.key.startswith(PERFORMED)
        return {
            "state": "success" if succeeded else "failed",
            "tasks": [
                _state(each) | {"performed": self._xcom(each, performed, session) or {}}
                for each in instances
            ],
            "outputs": self._xcom(last, result, session) if succeeded and last else None,
            "error": None if succeeded else (failure or {}).get("error", "TaskFailed"),
            "cause": None
            if succeeded
            else (failure or {}).get("cause", f"{culprit} failed; see the log"),
        }

    def _xcom(self, instance: TaskInstance, key: ColumnElement[bool], session: Session) -> Any:
        """Read an XCom of a task instance."""
        row = session.scalars(
            select(XComModel).where(
                XComModel.dag_id == instance.dag_id,
                XComModel.run_id == instance.run_id,
                XComModel.task_id == instance.task_id,
                XComModel.map_index == instance.map_index,
                key,
            )
        ).first()
        if row is None:
            return None
        value = json.loads(row.value) if isinstance(row.value, str) else row.value
        return deserialize(value)


def _moved_to(account: str, dag_id: str, run_id: str) -> bool:
    """Note the embedded account of a run; return whether it was run there the last time.

    It is in a file, since an Airflow that was killed goes on in another process; one that was
    killed while it wrote leaves the file as it was.
    """
    path = Path(os.environ["AIRFLOW_HOME"]) / "accounts.json"
    try:
        accounts = json.loads(path.read_text())
    except (OSError, ValueError):
        accounts = {}
    name = json.dumps([dag_id, run_id])
    before, accounts[name] = accounts.get(name), account
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(accounts))
    beside.replace(path)
    return bool(before == account)


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
