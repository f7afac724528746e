"""boto3 clients, made when they are needed and again when their credentials have expired."""

from __future__ import annotations

import threading
from typing import Any, Protocol

from orchestration.execution.clients import (
    assumed,
    keep_copy_source,
    one_attempt,
    patience,
    send,
    sign_with,
)
from orchestration.execution.driving import MOST_THREADS
from orchestration.execution.effects import Request, ServiceError
from orchestration.execution.sending import native, service_error
from orchestration.expressions import Json

USER_AGENT = "orchestration-direct"


class Session(Protocol):
    """Whatever makes boto3 clients: a ``boto3.Session``, or the embedded AWS."""

    def client(self, service_name: str, /, *, config: Any) -> Any:
        """Return a client for a service."""


class Clients:
    """The clients of one run; threads share them."""

    def __init__(self, session: Session, region: str | None = None) -> None:
        self._session = session
        self._region = region
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str], Any] = {}

    def elsewhere(self, region: str) -> Clients:
        """Return clients with the same credentials in a region of their own."""
        return Clients(self._session, region)

    def of(self, service: str, role: str = "") -> Any:
        """Return the client for a service, which acts as a role if one is assumed."""
        key = (service, role)
        # Making one changes the session, which threads may not do at the same time.
        with self._lock:
            if key not in self._clients:
                client = self._new(service)
                if role:
                    sign_with(client, assumed(self._new("sts"), role))
                self._clients[key] = client
            return self._clients[key]

    def send(self, request: Request) -> Json:
        """Send a request; once more with new credentials where the old ones have expired.

        Raises :class:`~orchestration.execution.effects.ServiceError`.
        """
        client = self.of(request.service, request.role)
        try:
            return _sent(client, request)
        except ServiceError as error:
            if not error.expired:
                raise
        self._discard((request.service, request.role), client)
        return _sent(self.of(request.service, request.role), request)

    def _discard(self, key: tuple[str, str], client: Any) -> None:
        with self._lock:
            if self._clients.get(key) is client:
                del self._clients[key]

    def _new(self, service: str) -> Any:
        elsewhere = {} if self._region is None else {"region_name": self._region}
        config = one_attempt(
            user_agent_extra=USER_AGENT,
            max_pool_connections=MOST_THREADS,
            **elsewhere,
            **patience(service),
        )
        client = self._session.client(service, config=config)
        if service == "s3":
            keep_copy_source(client)
        return client


def _sent(client: Any, request: Request) -> Json:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return native(send(client, request))
    except (ClientError, BotoCoreError) as error:
        raise service_error(error) from error
