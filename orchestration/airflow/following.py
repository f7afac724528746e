"""What a worker asks AWS over and over while a job runs, and the clients it does so with."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
from botocore.exceptions import BotoCoreError, ClientError

from orchestration.airflow import sending, watching
from orchestration.airflow.sending import Request
from orchestration.airflow.timing import pause
from orchestration.airflow.watching import Ended, Failed
from orchestration.expressions import Json
from orchestration.graph import Fallback, Retry, Until

if TYPE_CHECKING:
    from airflow.providers.amazon.aws.operators.base_aws import AwsBaseOperator


@dataclass(frozen=True, slots=True)
class Watch:
    """What a job that runs is polled and stopped with."""

    subject: str
    until: Until
    fallback: Fallback | None
    poll: Request
    stop: Request | None
    outputs: dict[str, Json]
    adopted: bool
    deadline: float


class Following:
    """A task's way to AWS; its clients are made when they are first needed."""

    def __init__(self, operator: AwsBaseOperator[AwsBaseHook], retry: Retry) -> None:
        self._operator = operator
        self._retry = retry
        self._clients: dict[str, Any] = {}

    @property
    def connection(self) -> Mapping[str, Any]:
        """What a hook is made with, as the argument of a trigger."""
        return {
            "aws_conn_id": self._operator.aws_conn_id,
            "region_name": self._operator.region_name,
            "verify": self._operator.verify,
            "config": self._operator.botocore_config,
        }

    def send(self, request: Request) -> Json:
        """Send a request; equal ones again while the error is one that passes."""
        return sending.send(self._client(request.service), request, self._retry)

    def stop(self, stop: Request) -> None:
        """Ask for the end of a job."""
        self._operator.log.info("%s", stop.operation)
        try:
            self.send(stop)
        except (ClientError, BotoCoreError) as error:
            # It may have ended meanwhile, and what called for the stop goes on in any case.
            self._operator.log.warning("could not be stopped: %s", error)

    def poll(self, watch: Watch) -> Ended | Failed | None:
        """How a job ended, ``None`` while it goes on or can't be asked."""
        try:
            response = self.send(watch.poll)
        except (ClientError, BotoCoreError) as error:
            if sending.expired(error):
                self._clients.clear()
                return None
            if sending.passes(error, self._retry):
                self._operator.log.warning("%s: %s; polling on", watch.subject, error)
                return None
            return watching.judged_error(watch.until, error, watch.subject)
        return watching.judged(watch.until, response, watch.subject, watch.fallback)

    def wait(self, watch: Watch) -> Ended | Failed:
        """Poll on this worker until the end."""
        while time.time() < watch.deadline:
            left = watch.deadline - time.time()
            time.sleep(max(0.0, min(pause(watch.until.interval_s), left)))
            verdict = self.poll(watch)
            if verdict is not None:
                return verdict
        if watch.stop is not None:
            self.stop(watch.stop)
        return watching.timed_out(watch.until, watch.subject)

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            own = self._operator.hook
            if service != own.client_type:
                own = AwsBaseHook(client_type=service, **self.connection)
            self._clients[service] = sending.client(own)
        return self._clients[service]
