"""The trigger that follows jobs without a worker."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, Final, TypeVar

from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async
from botocore.exceptions import BotoCoreError, ClientError

from orchestration.airflow import versions
from orchestration.airflow.clients import client
from orchestration.airflow.watches import verdict_to_json, watch_from_json
from orchestration.execution.clients import refresher, send, sign_with
from orchestration.execution.driving import driven_async
from orchestration.execution.effects import (
    Deadline,
    Effect,
    Note,
    Pause,
    Request,
    Send,
    Verdict,
    Watch,
)
from orchestration.execution.sending import native, service_error
from orchestration.execution.timing import pause, pause_length
from orchestration.execution.verdicts import followed, stopped

_T = TypeVar("_T")
_LOOK_S: Final = 60.0
"""Seconds between looks at a variable."""
_working: set[asyncio.Future[Any]] = set()
"""Work that goes on when its trigger is cancelled: the stopping of jobs until AWS was asked, and
questions to Airflow until they are answered."""


class FollowTrigger(BaseTrigger):
    """Polls jobs, or lets time pass, until one of what it waits for has ended.

    ``watches`` are JSON text, so that nobody reads keys of requests as their own. It may move
    between triggerers at any time: all it knows is in its arguments, deadlines as
    points in time. Only a person who marks or clears the task makes it stop the jobs
    (:meth:`on_kill`; before Airflow 3.3, the state of the task tells that it was marked).
    It gives control back, with no end of a job, when a ``variable`` of Airflow is no longer as the
    task has ``seen`` it.
    """

    def __init__(
        self,
        *,
        watches: str,
        connection: Mapping[str, Any],
        until: float | None = None,
        variable: str | None = None,
        seen: str | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow leaves it unannotated
        self.watches = watches
        self.connection = connection
        self.until = until
        self.variable = variable
        self.seen = seen

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and the arguments that make this trigger again."""
        return (
            f"{FollowTrigger.__module__}.{FollowTrigger.__qualname__}",
            {
                "watches": self.watches,
                "connection": self.connection,
                "until": self.until,
                "variable": self.variable,
                "seen": self.seen,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: the jobs that have ended, by their steps, and how."""
        waits = [self._followed(watch) for watch in self._watches()]
        if self.variable is not None:
            waits.append(self._changed(self.variable))
        waiting = {asyncio.create_task(each) for each in waits}
        seconds = None if self.until is None else max(0.0, self.until - time.time())
        try:
            done: set[asyncio.Task[tuple[str, Verdict] | None]] = set()
            if waiting:
                done, _ = await asyncio.wait(
                    waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
                )
            elif seconds is not None:
                await asyncio.sleep(seconds)
            verdicts = dict(end for task in done if (end := task.result()) is not None)
        except asyncio.CancelledError:
            if not versions.CALLS_ON_KILL:
                await _finished(self._stopped_if_decided())
            raise
        finally:
            for task in waiting:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*waiting, return_exceptions=True)
        ends = {path: verdict_to_json(verdict) for path, verdict in verdicts.items()}
        yield TriggerEvent({"verdicts": json.dumps(ends)})  # type: ignore[no-untyped-call]  # Airflow leaves it unannotated

    async def on_kill(self) -> None:
        """Stop what is waited for: a person has marked or cleared the task."""
        await _finished(self._stopped_all())

    async def _stopped_if_decided(self) -> None:
        try:
            decided = await versions.was_decided(self.task_instance)
        except Exception:
            # As when the triggerer ends. The task `leftovers` looks again at the end of the run.
            self.log.warning("what became of the task can't be told; its job runs on")
        else:
            if decided:
                await self._stopped_all()

    async def _stopped_all(self) -> None:
        await asyncio.gather(*(self._stopped(watch) for watch in self._watches()))

    def _watches(self) -> list[Watch]:
        return [watch_from_json(document) for document in json.loads(self.watches)]

    async def _changed(self, variable: str) -> None:
        """Return when the variable is no longer as the task has seen it."""
        while True:
            await asyncio.sleep(pause(_LOOK_S))
            try:
                value = await asyncio.shield(_kept(_value(variable)))
            except Exception as error:
                self.log.warning("the variable %s can't be read: %s", variable, error)
            else:
                if value not in (None, self.seen):
                    return

    async def _followed(self, watch: Watch) -> tuple[str, Verdict] | None:
        async with contextlib.AsyncExitStack() as stack:
            edge = _TriggerEdge(self.connection, stack, self.log)
            return watch.path, await driven_async(followed(watch), edge)

    async def _stopped(self, watch: Watch) -> None:
        async with contextlib.AsyncExitStack() as stack:
            await driven_async(stopped(watch), _TriggerEdge(self.connection, stack, self.log))


async def _value(variable: str) -> str | None:
    """Return a variable of Airflow; ``None``: there is none, or Airflow can't tell."""
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import GetVariable, VariableResult

    # Not Variable.get(), which blocks the event loop of all triggers.
    told: Any = await task_runner.SUPERVISOR_COMMS.asend(GetVariable(key=variable))
    return told.value if isinstance(told, VariableResult) else None


def _kept(work: Coroutine[Any, Any, _T]) -> asyncio.Future[_T]:
    """Return some work that an event loop does to its end: it keeps no reference of its own."""
    working = asyncio.ensure_future(work)
    _working.add(working)
    working.add_done_callback(_working.discard)
    return working


async def _finished(work: Coroutine[Any, Any, None]) -> None:
    """Finish some work, however often this is cancelled.

    Airflow cancels a trigger again in each round of its triggerer, about once a second, until it is
    gone: the work is a task of its own, which that does not reach. One that is cut off while the
    triggerer's supervisor answers it would leave the answer to the next who asks.
    ``test_a_stop_outlasts_the_cancellations_that_follow`` fails without it.
    """
    working = _kept(work)
    while not working.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(working)


class _TriggerEdge:
    """Answers the effects of following a job, without blocking."""

    def __init__(
        self, connection: Mapping[str, Any], stack: contextlib.AsyncExitStack, log: Any
    ) -> None:
        self._connection = connection
        self._stack = stack
        self._log = log
        self._clients: dict[tuple[str, str], Any] = {}

    async def answer(self, effect: Effect) -> Any:
        """Answer an effect of following or stopping a job."""
        match effect:
            case Send(request):
                return await self._send(request)
            case Pause():
                await asyncio.sleep(pause_length(effect, time.time()))
            case Deadline():
                return time.time()
            case Note(text):
                self._log.info("%s", text)
            case _:
                raise TypeError(f"a trigger does not answer {type(effect).__name__}")
        return None

    async def _send(self, request: Request) -> Any:
        try:
            connection = await self._client(request.service, request.role)
            return native(await send(connection, request))
        except (ClientError, BotoCoreError) as error:
            meaning = service_error(error)
            if meaning.expired:
                await self._stack.aclose()
                self._clients.clear()
            raise meaning from error

    async def _client(self, service: str, role: str) -> Any:
        if (service, role) not in self._clients:
            # Reads a connection and botocore's data files: nothing for the event loop.
            making = await sync_to_async(client)(self._hook(service), asynchronous=True)
            made = await self._stack.enter_async_context(making)
            if role:
                from aiobotocore.credentials import AioDeferredRefreshableCredentials

                sts = await sync_to_async(client)(self._hook("sts"))
                assuming = sync_to_async(refresher(sts, role))
                sign_with(made, AioDeferredRefreshableCredentials(assuming, "assume-role"))
            self._clients[service, role] = made
        return self._clients[service, role]

    def _hook(self, service: str) -> AwsBaseHook:
        return AwsBaseHook(client_type=service, **self._connection)
