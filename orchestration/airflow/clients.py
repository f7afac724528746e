"""Clients for a task or a trigger, with the settings of its Airflow connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
from botocore.exceptions import BotoCoreError, ClientError

from orchestration.airflow.context import ASKING
from orchestration.execution.clients import (
    assumed,
    keep_copy_source,
    one_attempt,
    patience,
    send,
    sign_with,
)
from orchestration.execution.effects import Request
from orchestration.execution.sending import native, service_error
from orchestration.expressions import Json

if TYPE_CHECKING:
    from airflow.providers.amazon.aws.hooks.base_aws import AwsGenericHook


def client(hook: AwsGenericHook[Any], *, asynchronous: bool = False) -> Any:
    """Return a hook's client, with the settings of its connection, that does not retry itself."""
    config = hook.config.merge(one_attempt(**patience(hook.client_type or "")))
    connection = hook.get_client_type(hook.region_name, config, deferrable=asynchronous)
    if not asynchronous:
        keep_copy_source(connection)
    return connection


class Clients:
    """A task's way to AWS; its clients are made when they are first needed."""

    def __init__(self, connection: Mapping[str, Any]) -> None:
        self.connection = connection
        self._clients: dict[tuple[str, str], Any] = {}

    def send(self, request: Request) -> Json:
        """Send a request once.

        Raises :class:`~orchestration.execution.effects.ServiceError`.
        """
        try:
            return native(send(self._client(request.service, request.role), request))
        except (ClientError, BotoCoreError) as error:
            meaning = service_error(error)
            if meaning.expired:
                with ASKING:
                    self._clients.clear()
            raise meaning from error

    def place(self, service: str) -> tuple[str, str]:
        """Return the region and the partition in which a service is called."""
        meta = self._client(service).meta
        return meta.region_name, meta.partition

    def _client(self, service: str, role: str = "") -> Any:
        # A hook asks Airflow for its connection.
        with ASKING:
            if (service, role) not in self._clients:
                made = client(AwsBaseHook(client_type=service, **self.connection))
                if role:
                    sts = client(AwsBaseHook(client_type="sts", **self.connection))
                    sign_with(made, assumed(sts, role))
                self._clients[service, role] = made
            return self._clients[service, role]
