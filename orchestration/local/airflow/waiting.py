"""Triggers that wait at once, and how the tasks go on that they hold."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.models.taskinstance import TaskInstance
from airflow.sdk.serde import serialize
from airflow.utils.state import TaskInstanceState

if TYPE_CHECKING:
    from airflow.triggers.base import BaseTrigger
    from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Following:
    """The way a deferred task goes on: the method, and the arguments from the task."""

    method: str
    kwargs: Mapping[str, Any]


class Triggers:
    """Triggers that wait concurrently in one thread, as in a triggerer."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._fired: queue.Queue[tuple[Any, str, dict[str, Any]]] = queue.Queue()
        self._awake = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

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
