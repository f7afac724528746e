"""What waits in the triggerer, without a worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async
from botocore.exceptions import BotoCoreError, ClientError

from orchestration.airflow import sending, watching
from orchestration.airflow.sending import Request
from orchestration.airflow.timing import pause
from orchestration.airflow.watching import Ended, Failed
from orchestration.backends.airflow.calls import decode_call
from orchestration.expressions import Json
from orchestration.graph import Call


class UntilTrigger(BaseTrigger):
    """Polls what a call started until it has ended.

    It may move between triggerers at any time: all it knows is in its arguments, the deadline as a
    point in time. Only a person who marks or clears the task makes it stop what it waits for
    (:meth:`on_kill`, Airflow 3.3 and later).
    """

    def __init__(
        self,
        *,
        subject: str,
        call: Mapping[str, Any],
        poll: Mapping[str, Any],
        stop: Mapping[str, Any] | None,
        outputs: Mapping[str, Json],
        adopted: bool,
        deadline: float,
        hook: Mapping[str, Any],
        place: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow leaves it unannotated
        self.subject = subject
        self.call = call
        self.poll = poll
        self.stop = stop
        self.outputs = outputs
        self.adopted = adopted
        self.deadline = deadline
        self.hook = hook
        self.place = place

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and the arguments that make this trigger again."""
        return (
            f"{UntilTrigger.__module__}.{UntilTrigger.__qualname__}",
            {
                "subject": self.subject,
                "call": self.call,
                "poll": self.poll,
                "stop": self.stop,
                "outputs": self.outputs,
                "adopted": self.adopted,
                "deadline": self.deadline,
                "hook": self.hook,
                "place": self.place,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: the step's outputs, or its error and cause."""
        call = decode_call(self.subject, self.call, {})
        verdict: Ended | Failed | None = None
        while verdict is None:
            async with await self._client(self.poll["service"]) as connection:
                verdict = await self._watch(connection, call)
        yield TriggerEvent({**self._found(verdict), "place": self.place})  # type: ignore[no-untyped-call]  # Airflow leaves it unannotated

    def _found(self, verdict: Ended | Failed) -> dict[str, Any]:
        match verdict:
            case Ended(outputs):
                return {"outputs": {**self.outputs, **outputs}}
            case Failed(error, cause, lacking):
                told = {"error": error, "cause": cause, "adopted": self.adopted}
                return told | {"lacking": lacking}

    async def on_kill(self) -> None:
        """Stop what is waited for: a person has marked or cleared the task."""
        await self._stop()

    async def _watch(self, connection: Any, call: Call) -> Ended | Failed | None:
        """The end, ``None`` where a new connection is needed first."""
        until, retry = call.until, call.retry
        assert until is not None  # noqa: S101 (the operator defers only to wait)
        request = Request.from_json(self.poll)
        while True:
            left = self.deadline - time.time()
            await asyncio.sleep(max(0.0, min(pause(until.interval_s), left)))
            try:
                response = await sending.send_async(connection, request, retry)
            except (ClientError, BotoCoreError) as error:
                if sending.expired(error):
                    return None
                if not sending.passes(error, retry):
                    return watching.judged_error(until, error, self.subject)
                self.log.warning("%s: %s; polling on", self.subject, error)
            else:
                verdict = watching.judged(until, response, self.subject, call.fallback)
                if verdict is not None:
                    return verdict
            if time.time() >= self.deadline:
                await self._stop()
                return watching.timed_out(until, self.subject)

    async def _stop(self) -> None:
        if self.stop is None:
            return
        request = Request.from_json(self.stop)
        retry = decode_call(self.subject, self.call, {}).retry
        self.log.info("Stopping %s", self.subject)
        try:
            async with await self._client(request.service) as connection:
                await sending.send_async(connection, request, retry)
        except (ClientError, BotoCoreError) as error:
            # It may have ended meanwhile, and what called for the stop goes on in any case.
            self.log.warning("%s could not be stopped: %s", self.subject, error)

    async def _client(self, service: str) -> Any:
        hook: AwsBaseHook = AwsBaseHook(client_type=service, **self.hook)
        # Reads a connection and botocore's data files: nothing for the event loop.
        return await sync_to_async(sending.client)(hook, asynchronous=True)


class PauseTrigger(BaseTrigger):
    """Waits for a point in time, to the fraction of a second."""

    def __init__(self, *, until: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow leaves it unannotated
        self.until = until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and the arguments that make this trigger again."""
        return (
            f"{PauseTrigger.__module__}.{PauseTrigger.__qualname__}",
            {"until": self.until},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event when it is time."""
        await asyncio.sleep(max(0.0, self.until - time.time()))
        yield TriggerEvent({})  # type: ignore[no-untyped-call]  # Airflow leaves it unannotated
