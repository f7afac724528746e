"""Triggers that wait at once, and how the tasks go on that they hold."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.models.taskinstance import TaskInstance
from airflow.models.variable import Variable
from airflow.sdk.execution_time.comms import GetVariable, VariableResult
from airflow.sdk.execution_time.supervisor import InProcessSupervisorComms, set_supervisor_comms
from airflow.sdk.serde import serialize
from airflow.utils.session import create_session
from airflow.utils.state import TaskInstanceState
from sqlalchemy import select

if TYPE_CHECKING:
    from airflow.triggers.base import BaseTrigger
    from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Following:
    """The way a deferred task goes on: the method, and the arguments from the task."""

    method: str
    kwargs: Mapping[str, Any]


class _Supervisor:
    """The supervisor of a triggerer, as triggers ask it for variables."""

    async def asend(self, message: GetVariable) -> VariableResult | None:
        """Return a variable of the database."""
        value = await asyncio.to_thread(_value, message.key)
        return None if value is None else VariableResult(key=message.key, value=value)


def _value(key: str) -> str | None:
    with create_session() as session:
        row = session.scalar(select(Variable).where(Variable.key == key))
        return None if row is None else row.get_val()


# What tasks have in its place while they run here (Airflow 3.3.2) can't be asked by triggers.
InProcessSupervisorComms.asend = _Supervisor.asend  # type: ignore[attr-defined,unused-ignore]


class Triggers:
    """Triggers that wait concurrently in one thread, as in a triggerer."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._fired: queue.Queue[tuple[Any, str, dict[str, Any]]] = queue.Queue()
        self._awake = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._asking = contextlib.ExitStack()
        self._asking.enter_context(set_supervisor_comms(_Supervisor()))

    def start(self, instance_id: Any, following: Following, trigger: BaseTrigger) -> None:
        """Run a trigger, whose event lets a task go on."""
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

    def wait(self, at_most_s: float) -> None:
        """Wait until a trigger has fired."""
        self._awake.wait(at_most_s)
        self._awake.clear()

    def close(self) -> None:
        """End the triggers that still wait."""
        self._asking.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _first(self, instance_id: Any, following: Following, trigger: BaseTrigger) -> None:
        try:
            event = await anext(aiter(trigger.run()))
        except Exception as error:  # as in a triggerer, a trigger that fails ends no other
            kwargs = {"error": "Trigger failure", "traceback": [repr(error)]}
            self._fired.put((instance_id, "__fail__", kwargs))
        else:
            kwargs = {**following.kwargs, "event": serialize(event.payload)}
            self._fired.put((instance_id, following.method, kwargs))
        finally:
            self._awake.set()
